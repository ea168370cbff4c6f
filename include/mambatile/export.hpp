#pragma once

/// @file
/// Symbol visibility. The library is built with hidden visibility; what carries
/// MAMBATILE_EXPORT is its binary interface.

#define MAMBATILE_EXPORT __attribute__((visibility("default")))
