# mx8_isa_sources(avx2|avx512 FILES...): the files of one instruction set, compiled with its flags. Only
# they may use its instructions: such a file includes intrinsics, plain structs and bodies in a namespace of
# its own (mx8::cpu::avx2), and no inline function of a shared header, which the linker could pick for
# code that runs on older processors.
set(MX8_X86 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(MX8_X86 ON)
endif()

set(MX8_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
# gcc 12 warns of its own AVX-512 intrinsics, whose merge operand is left undefined on purpose.
set(MX8_ISA_FLAGS_avx512 -Wno-maybe-uninitialized -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c)

function(mx8_isa_sources isa)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${MX8_ISA_FLAGS_${isa}}")
endfunction()
