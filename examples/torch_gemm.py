#!/usr/bin/env python3
"""Calls the mx8 kernel library on torch tensors by pointer and compares it with torch.

  python3 examples/torch_gemm.py build/cuda/src/kernels/cuda/libmx8_kernels.so

Needs a GPU and PyTorch with float8 dtypes; the library itself needs neither Python nor PyTorch.
"""
import ctypes as C
import sys

import torch


class WeightDesc(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("n", C.c_int64), ("k", C.c_int64), ("activations", C.c_int),
                ("gate_up", C.c_int32)]


class QuantizeArgs(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("x", C.c_void_p), ("ldx", C.c_int64), ("x_fp16", C.c_int32),
                ("power_of_two", C.c_int32), ("m", C.c_int32), ("k", C.c_int32), ("codes", C.c_void_p),
                ("ld_codes", C.c_int64), ("scales", C.c_void_p)]


class GemmDesc(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("weight", WeightDesc), ("max_m", C.c_int32),
                ("force_kernel", C.c_char_p)]


class GemmArgs(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("packed", C.c_void_p), ("row_scales", C.c_void_p), ("x", C.c_void_p),
                ("ldx", C.c_int64), ("token_scales", C.c_void_p), ("y", C.c_void_p), ("ldy", C.c_int64),
                ("output", C.c_int), ("bias", C.c_void_p), ("residual", C.c_void_p), ("ld_residual", C.c_int64),
                ("m", C.c_int32), ("m_device", C.c_void_p), ("dependent_launch", C.c_int32),
                ("workspace", C.c_void_p)]


def sized(struct, **fields):
    return struct(struct_size=C.sizeof(struct), **fields)


def main():
    lib = C.CDLL(sys.argv[1])
    lib.mx8_last_error.restype = C.c_char_p
    lib.mx8_gemm_kernel.restype = C.c_char_p
    lib.mx8_gemm_workspace_size.restype = C.c_size_t
    for f in (lib.mx8_gemm_workspace_size, lib.mx8_gemm_destroy):
        f.argtypes = [C.c_void_p]
    lib.mx8_gemm_kernel.argtypes = [C.c_void_p, C.c_int32]

    def ok(status):
        if status != 0:
            raise RuntimeError(lib.mx8_last_error().decode())

    torch.manual_seed(0)
    n, k, most = 4096, 2048, 512
    w = torch.randn(n, k // 32, 32, device="cuda") * 0.02
    exponent = torch.ceil(torch.log2(w.abs().amax(-1) / 448))
    codes = (w * torch.exp2(-exponent)[..., None]).to(torch.float8_e4m3fn)
    scales = (exponent + 127).to(torch.uint8).contiguous()
    decoded = (codes.float() * torch.exp2(exponent)[..., None]).reshape(n, k)
    codes = codes.reshape(n, k).contiguous().view(torch.uint8)
    x = torch.randn(most, k, device="cuda", dtype=torch.bfloat16)
    stream = C.c_void_p(torch.cuda.current_stream().cuda_stream)
    worst = 0.0
    for activations, name, limit in ((0, "BF16", 2.5e-3), (2, "FP8", 4e-2)):
        weight = sized(WeightDesc, n=n, k=k, activations=activations)
        size, rows = C.c_size_t(), C.c_size_t()
        ok(lib.mx8_packed_size(C.byref(weight), C.byref(size), C.byref(rows)))
        packed = torch.empty(size.value, dtype=torch.uint8, device="cuda")
        row_scales = torch.empty(max(rows.value, 1), dtype=torch.float32, device="cuda")
        ok(lib.mx8_pack(C.byref(weight), C.c_void_p(codes.data_ptr()), C.c_void_p(scales.data_ptr()),
                        C.c_void_p(packed.data_ptr()), C.c_void_p(row_scales.data_ptr()), stream))
        plan = C.c_void_p()
        ok(lib.mx8_gemm_create(C.byref(sized(GemmDesc, weight=weight, max_m=most)), C.byref(plan)))
        workspace = torch.empty(lib.mx8_gemm_workspace_size(plan), dtype=torch.uint8, device="cuda")
        ok(lib.mx8_gemm_workspace_init(plan, C.c_void_p(workspace.data_ptr()), stream))
        x_codes = torch.empty(most, k, dtype=torch.uint8, device="cuda")
        token_scales = torch.empty(most, dtype=torch.float32, device="cuda")
        ok(lib.mx8_quantize_tokens(C.byref(sized(
            QuantizeArgs, x=x.data_ptr(), ldx=k, m=most, k=k, codes=x_codes.data_ptr(), ld_codes=k,
            scales=token_scales.data_ptr())), stream))
        for m in (1, 8, 16, 64, 200, 512):
            y = torch.full((m, n), float("nan"), dtype=torch.bfloat16, device="cuda")
            ok(lib.mx8_gemm_launch(plan, C.byref(sized(
                GemmArgs, packed=packed.data_ptr(), row_scales=row_scales.data_ptr(),
                x=(x_codes if activations == 2 else x).data_ptr(), ldx=k, token_scales=token_scales.data_ptr(),
                y=y.data_ptr(), ldy=n, m=m, workspace=workspace.data_ptr())), stream))
            want = x[:m].double() @ decoded.double().T
            error = ((y.double() - want).norm() / want.norm()).item()
            print(f"{name} M={m}: {lib.mx8_gemm_kernel(plan, m).decode()}, relative error {error:.2e}")
            worst = max(worst, error / limit)
            if not error < limit:
                return 1
        lib.mx8_gemm_destroy(plan)
    return 0


if __name__ == "__main__":
    sys.exit(main())
