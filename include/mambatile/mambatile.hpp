#pragma once

/// @file
/// Everything the library offers.

#include <mambatile/backend.hpp>
#include <mambatile/checkpoint.hpp>
#include <mambatile/context.hpp>
#include <mambatile/conv1d.hpp>
#include <mambatile/dtype.hpp>
#include <mambatile/errors.hpp>
#include <mambatile/matmul.hpp>
#include <mambatile/mixer.hpp>
#include <mambatile/model.hpp>
#include <mambatile/norm.hpp>
#include <mambatile/packing.hpp>
#include <mambatile/plan.hpp>
#include <mambatile/recurrence.hpp>
#include <mambatile/safetensors.hpp>
#include <mambatile/sampler.hpp>
#include <mambatile/scan.hpp>
#include <mambatile/state_update.hpp>
#include <mambatile/take_rows.hpp>
#include <mambatile/tensor_view.hpp>
#include <mambatile/version.hpp>
