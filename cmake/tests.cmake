# How tests are built and registered.
#
# Catch2 executables are split into one ctest entry a tag, so that `ctest -j` has something to spread and a
# failure says where it is. Cases that carry none of the tags run in the entry `.other`: none is left out.
# Each entry writes its cases' results beside the console output, for the count at the end of ./dev test.

set(MAMBATILE_TEST_RESULTS ${PROJECT_BINARY_DIR}/test-results)
file(MAKE_DIRECTORY ${MAMBATILE_TEST_RESULTS})

# Catch2 answers 4 when every selected case was skipped.
set(_all_skipped 4)

function(_mambatile_add_entry executable name filter)
  add_test(NAME ${name} COMMAND ${executable} ${filter} --allow-running-no-tests --rng-seed 1
    --reporter console --reporter xml::out=${MAMBATILE_TEST_RESULTS}/${name}.xml)
  # Idle OpenMP threads that spin would steal the cores from the tests beside them.
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE ${_all_skipped} ENVIRONMENT "OMP_WAIT_POLICY=passive")
endfunction()

# mambatile_register_tests(EXECUTABLE NAME TAGS tag...)
function(mambatile_register_tests executable name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "TAGS")
  set(rest "")
  foreach(tag IN LISTS arg_TAGS)
    _mambatile_add_entry(${executable} ${name}.${tag} "[${tag}]")
    string(APPEND rest "~[${tag}]")
  endforeach()
  if(rest)
    _mambatile_add_entry(${executable} ${name}.other "${rest}")
  else()
    _mambatile_add_entry(${executable} ${name} "")
  endif()
endfunction()

# An executable of Catch2 cases that run once, whatever the backends: mambatile_add_test(NAME SOURCES file... [TAGS tag...])
function(mambatile_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;TAGS;LIBRARIES")
  set(target mambatile_test_${name})
  add_executable(${target} ${arg_SOURCES})
  mambatile_test_target(${target})
  target_link_libraries(${target} PRIVATE Catch2::Catch2WithMain mambatile_testable ${arg_LIBRARIES})
  mambatile_register_tests(${target} ${name} TAGS ${arg_TAGS})
endfunction()

# What every target with test code is compiled with.
function(mambatile_test_target target)
  mambatile_compile_options(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/backends ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PRIVATE Catch2::Catch2 fmt::fmt nlohmann_json::nlohmann_json
    mambatile_evaluation)
  target_compile_definitions(${target} PRIVATE MAMBATILE_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests")
endfunction()

# The shared cases (object library mambatile_test_cases), linked once a backend into mambatile_test_<backend>.
# The executable knows its backend by the one file compiled for it.
function(mambatile_add_backend_tests backend)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "TAGS;SOURCES;LIBRARIES")
  set(target mambatile_test_${backend})
  add_executable(${target} ${PROJECT_SOURCE_DIR}/tests/support/backend_under_test.cpp ${arg_SOURCES}
    $<TARGET_OBJECTS:mambatile_test_cases>)
  mambatile_test_target(${target})
  target_compile_definitions(${target} PRIVATE MAMBATILE_TEST_BACKEND="${backend}")
  target_link_libraries(${target} PRIVATE Catch2::Catch2WithMain mambatile_testable ${arg_LIBRARIES})
  mambatile_register_tests(${target} ${backend} TAGS ${arg_TAGS})
endfunction()
