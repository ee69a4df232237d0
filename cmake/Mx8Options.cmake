# Compiler and linker settings that every target of ours shares (interface target mx8_options).
add_library(mx8_options INTERFACE)
target_include_directories(mx8_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/generated)

# No -ffast-math: it links start-up code that zeroes subnormals, and E4M3 codes decode to subnormals.
target_compile_options(mx8_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wno-unused-parameter
  -Wno-missing-field-initializers -fno-math-errno
  -fno-trapping-math -ffp-contract=off>)
if(MX8_WERROR)
  target_compile_options(mx8_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

if(MX8_SANITIZE)
  # gcc's flow analysis sees uninitialised values in the instrumented code where there are none.
  target_compile_options(mx8_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${MX8_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all -g1 -Wno-maybe-uninitialized>)
  target_link_options(mx8_options INTERFACE -fsanitize=${MX8_SANITIZE})
endif()

find_program(MX8_CCACHE ccache)
if(MX8_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MX8_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${MX8_CCACHE})
endif()
find_package(Threads REQUIRED)
target_link_libraries(mx8_options INTERFACE Threads::Threads)
