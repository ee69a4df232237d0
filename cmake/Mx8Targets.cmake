# mx8_library(name SOURCES ... [DEPS ...]): a static library of one layer.
function(mx8_library name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  target_link_libraries(${name} PUBLIC mx8_options ${A_DEPS})
endfunction()

# mx8_test(name SOURCES ... [DEPS ...] [LABEL fast|model|gpu] [TIMEOUT s] [ARGS ...]): one GoogleTest program.
# A test that cannot run here exits with 77 after printing why (see tests/skip.h); ctest shows it as skipped.
function(mx8_test name)
  if(NOT MX8_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(A "" "LABEL;TIMEOUT" "SOURCES;DEPS;ARGS" ${ARGN})
  if(NOT A_LABEL)
    set(A_LABEL fast)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)
  endif()
  add_executable(${name} ${A_SOURCES} ${PROJECT_SOURCE_DIR}/tests/test_main.cc)
  target_link_libraries(${name} PRIVATE ${A_DEPS} mx8_options GTest::gtest)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # Test code is not worth optimising; what it tests is built as it ships.
  target_compile_options(${name} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  target_compile_definitions(${name} PRIVATE
    MX8_SOURCE_DIR="${PROJECT_SOURCE_DIR}" MX8_BINARY_DIR="${PROJECT_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name} ${A_ARGS})
  set_tests_properties(${name} PROPERTIES
    LABELS ${A_LABEL} TIMEOUT ${A_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()

# mx8_bench(name SOURCES ... [DEPS ...]): a program that prints measurements; never a test.
function(mx8_bench name)
  if(NOT MX8_BUILD_BENCH)
    return()
  endif()
  cmake_parse_arguments(A "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_DEPS} mx8_options)
endfunction()
