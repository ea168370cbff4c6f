# Every option of the build.

# A backend's switch: ON fails when its toolkit is missing, AUTO says what is missing and goes on without it.
function(mambatile_backend_option name what)
  set(variable MAMBATILE_ENABLE_${name})
  set(${variable} AUTO CACHE STRING "Build the ${name} backend (${what}): AUTO, ON or OFF")
  set_property(CACHE ${variable} PROPERTY STRINGS AUTO ON OFF)
  string(TOUPPER "${${variable}}" value)
  if(NOT value MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${variable} is \"${${variable}}\"; it must be AUTO, ON or OFF")
  endif()
  set(${variable} ${value} PARENT_SCOPE)
endfunction()

mambatile_backend_option(KOKKOS "CPU threads and SIMD, Kokkos 4.5 or newer")
mambatile_backend_option(CUDA "NVIDIA GPUs, CUDA Toolkit 13.4 or newer")
set(MAMBATILE_DEFAULT_BACKEND "" CACHE STRING
  "Backend that default_backend() returns; empty: the fastest one for the host")

set(MAMBATILE_DEPS_DIR "$ENV{MAMBATILE_DEPS_DIR}" CACHE PATH
  "Where ./dev setup puts what the distribution does not carry; empty: .deps in the source tree")
set(MAMBATILE_KOKKOS_FLAVOUR openmp CACHE STRING "Which Kokkos of MAMBATILE_DEPS_DIR: openmp or threads")

option(MAMBATILE_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(MAMBATILE_BUILD_FUZZERS "Build the fuzzers (Clang)" OFF)
option(MAMBATILE_BUILD_TOOLS "Build the program mambatile" ${PROJECT_IS_TOP_LEVEL})
option(MAMBATILE_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(MAMBATILE_INSTALL "Install the library, its headers and its package files" ${PROJECT_IS_TOP_LEVEL})
option(MAMBATILE_WARNINGS "Compile with the project's warnings" ${PROJECT_IS_TOP_LEVEL})
option(MAMBATILE_WARNINGS_AS_ERRORS "Treat the project's warnings as errors" OFF)
option(BUILD_SHARED_LIBS "Build a shared library")

# A single-configuration build without a type would be an unoptimised one.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
