# Installs the library, its headers, the CMake package and the pkg-config file; also exports the build tree,
# so that find_package works on a build that was not installed.

include(CMakePackageConfigHelpers)

set(_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mambatile)

install(TARGETS mambatile EXPORT mambatile-targets
  FILE_SET HEADERS
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT mambatile-targets NAMESPACE mambatile:: DESTINATION ${_package_dir})
export(EXPORT mambatile-targets NAMESPACE mambatile:: FILE ${PROJECT_BINARY_DIR}/mambatile-targets.cmake)

# A shared library has its dependencies inside; a program that links the static one needs them again.
set(MAMBATILE_NEEDS_KOKKOS OFF)
set(MAMBATILE_NEEDS_CUDA OFF)
if(NOT BUILD_SHARED_LIBS)
  set(MAMBATILE_NEEDS_KOKKOS ${MAMBATILE_WITH_KOKKOS})
  set(MAMBATILE_NEEDS_CUDA ${MAMBATILE_WITH_CUDA})
endif()
get_property(MAMBATILE_BACKENDS GLOBAL PROPERTY MAMBATILE_BACKENDS)
configure_package_config_file(cmake/mambatile-config.cmake.in ${PROJECT_BINARY_DIR}/mambatile-config.cmake
  INSTALL_DESTINATION ${_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mambatile-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mambatile-config.cmake ${PROJECT_BINARY_DIR}/mambatile-config-version.cmake
  DESTINATION ${_package_dir})

# The pkg-config file finds its prefix from its own place, so that an installed tree can be moved.
file(RELATIVE_PATH MAMBATILE_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
get_property(_backend_libs GLOBAL PROPERTY MAMBATILE_PKGCONFIG_LIBS)
list(JOIN _backend_libs " " _backend_libs)
set(MAMBATILE_PC_LIBS "")
if(NOT BUILD_SHARED_LIBS)
  set(MAMBATILE_PC_LIBS "-lfmt ${_backend_libs}")
endif()
configure_file(cmake/mambatile.pc.in ${PROJECT_BINARY_DIR}/mambatile.pc.generate @ONLY)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/mambatile.pc INPUT ${PROJECT_BINARY_DIR}/mambatile.pc.generate)
install(FILES ${PROJECT_BINARY_DIR}/mambatile.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
