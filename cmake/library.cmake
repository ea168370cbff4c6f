# The library target and how backends become part of it.
#
# Sources are compiled in object libraries, so that each one sees only the packages and compiler flags it
# names: Kokkos brings flags for the native CPU, which the rest of the library must not be built with.
# `mambatile` itself is made of their objects and links only what a program needs at link time.

set(MAMBATILE_BACKENDS "")
set(MAMBATILE_PKGCONFIG_LIBS "")

function(mambatile_object_library target)
  add_library(${target} OBJECT ${ARGN})
  mambatile_compile_options(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE fmt::fmt)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

add_library(mambatile)
add_library(mambatile::mambatile ALIAS mambatile)

# Which backends there are is known to one source file; no other depends on it.
function(mambatile_define_for_backend_list definition)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/backend_list.cpp TARGET_DIRECTORY mambatile_core
    APPEND PROPERTY COMPILE_DEFINITIONS ${definition})
endfunction()

# mambatile_add_backend(NAME SOURCES file... [LIBRARIES target...] [HEADERS_OF target...] [PKGCONFIG_LIBS flag...])
# LIBRARIES are linked into every program that uses the backend; HEADERS_OF are needed only to compile it;
# PKGCONFIG_LIBS is LIBRARIES as linker flags.
function(mambatile_add_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES;HEADERS_OF;PKGCONFIG_LIBS")
  if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "mambatile_add_backend(${name}): SOURCES are needed; not understood: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(target mambatile_backend_${name})
  mambatile_object_library(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} ${arg_HEADERS_OF})
  target_sources(mambatile PRIVATE $<TARGET_OBJECTS:${target}>)
  foreach(library IN LISTS arg_LIBRARIES)
    target_link_libraries(mambatile PRIVATE $<LINK_ONLY:${library}>)
  endforeach()
  string(TOUPPER ${name} upper)
  mambatile_define_for_backend_list(MAMBATILE_HAS_${upper}=1)
  set_property(GLOBAL APPEND PROPERTY MAMBATILE_BACKENDS ${name})
  set_property(GLOBAL APPEND PROPERTY MAMBATILE_PKGCONFIG_LIBS ${arg_PKGCONFIG_LIBS})
endfunction()

# After the last backend: the rest of the target's properties.
function(mambatile_finish_library)
  # Compiled once by its own package: header-only, it makes each file here five times as slow to compile.
  target_link_libraries(mambatile PRIVATE $<LINK_ONLY:fmt::fmt>)
  get_property(backends GLOBAL PROPERTY MAMBATILE_BACKENDS)
  if(MAMBATILE_DEFAULT_BACKEND AND NOT MAMBATILE_DEFAULT_BACKEND IN_LIST backends)
    message(FATAL_ERROR "MAMBATILE_DEFAULT_BACKEND is \"${MAMBATILE_DEFAULT_BACKEND}\"; this build has: ${backends}")
  endif()
  mambatile_define_for_backend_list(MAMBATILE_DEFAULT_BACKEND="${MAMBATILE_DEFAULT_BACKEND}")
  target_sources(mambatile PRIVATE $<TARGET_OBJECTS:mambatile_core>)

  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/mambatile/*.hpp)
  target_sources(mambatile PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})
  target_compile_features(mambatile PUBLIC cxx_std_20)
  set_target_properties(mambatile PROPERTIES
    LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

  # Tests reach inside the library, which a shared one hides; they link the same objects.
  if(MAMBATILE_BUILD_TESTS)
    if(BUILD_SHARED_LIBS)
      get_target_property(objects mambatile SOURCES)
      get_target_property(libraries mambatile LINK_LIBRARIES)
      add_library(mambatile_testable STATIC ${objects})
      set_target_properties(mambatile_testable PROPERTIES LINKER_LANGUAGE CXX)
      target_link_libraries(mambatile_testable PUBLIC ${libraries})
      target_include_directories(mambatile_testable PUBLIC ${PROJECT_SOURCE_DIR}/include)
    else()
      add_library(mambatile_testable ALIAS mambatile)
    endif()
  endif()
endfunction()

function(mambatile_summary)
  get_property(backends GLOBAL PROPERTY MAMBATILE_BACKENDS)
  list(JOIN backends " " backends)
  message(STATUS "mambatile ${PROJECT_VERSION}: backends ${backends}")
endfunction()
