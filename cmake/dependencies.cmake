# Third-party packages. None of them shows in include/, none is fetched here: `./dev setup` puts what the
# distribution does not carry into MAMBATILE_DEPS_DIR, and a package found elsewhere serves as well.

set(_deps "${MAMBATILE_DEPS_DIR}")
if(NOT _deps)
  set(_deps ${PROJECT_SOURCE_DIR}/.deps)
endif()
list(APPEND CMAKE_PREFIX_PATH ${_deps}/kokkos-${MAMBATILE_KOKKOS_FLAVOUR})

find_package(fmt 9 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)

# Sets MAMBATILE_WITH_<NAME> from what was asked for and why it cannot be had (empty: it can).
function(mambatile_decide_backend name missing)
  set(with ON)
  if(missing AND MAMBATILE_ENABLE_${name} STREQUAL "ON")
    message(FATAL_ERROR "MAMBATILE_ENABLE_${name} is ON, but ${missing}")
  elseif(missing)
    message(STATUS "Leaving out the ${name} backend: ${missing}")
    set(with OFF)
  endif()
  set(MAMBATILE_WITH_${name} ${with} PARENT_SCOPE)
endfunction()

set(MAMBATILE_WITH_KOKKOS OFF)
if(NOT MAMBATILE_ENABLE_KOKKOS STREQUAL "OFF")
  # The package's version file refuses another major version, so the minimum is checked here.
  find_package(Kokkos CONFIG QUIET)
  set(_missing "")
  if(NOT Kokkos_FOUND)
    set(_missing "Kokkos was not found (./dev setup builds it)")
  elseif(Kokkos_VERSION VERSION_LESS 4.5)
    set(_missing "Kokkos ${Kokkos_VERSION} in ${Kokkos_DIR} is older than 4.5")
  endif()
  mambatile_decide_backend(KOKKOS "${_missing}")
endif()

set(MAMBATILE_WITH_CUDA OFF)
if(NOT MAMBATILE_ENABLE_CUDA STREQUAL "OFF")
  include(cmake/cuda_toolkit.cmake)
  mambatile_find_cuda(${_deps}/cuda _missing)
  mambatile_decide_backend(CUDA "${_missing}")
endif()
if(MAMBATILE_WITH_CUDA)
  mambatile_enable_cuda()
endif()
