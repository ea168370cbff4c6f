# What every target of the project is compiled with.

include(GNUInstallDirs)

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(CCACHE ccache)
  mark_as_advanced(CCACHE)
  if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  endif()
endif()

# C++20, visibility and warnings; for each target of ours, whatever its folder.
function(mambatile_compile_options target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  if(MAMBATILE_WARNINGS)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wsign-conversion;-Wshadow;-Wnon-virtual-dtor;-Wold-style-cast;-Woverloaded-virtual;-Wimplicit-fallthrough>)
    # GCC 12 reports faults that are not there: std::sort of a short array as out of its bounds, a string
    # built by operator+ as overlapping itself.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-restrict>)
    endif()
    if(MAMBATILE_WARNINGS_AS_ERRORS)
      target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:--Werror=all-warnings>)
    endif()
  endif()
endfunction()
