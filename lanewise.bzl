"""Macros every target of this project goes through: they carry the floating-point flags of docs/design.md, section 2.

A `.bazelrc` does not reach those who embed the project, so the flags that results depend on are set here.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

# Command-line --copt comes before these, so an embedding project's -ffast-math is undone.
NUMERICS_COPTS = [
    "-ffp-contract=off",
    "-fno-fast-math",
]

WARNING_COPTS = [
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Wno-unused-parameter",
]

# AVX3_DL (Ice Lake and later: VNNI) is not built by default; SSSE3 and SSE4 differ in nothing that kernels use much.
KERNEL_DEFINES = [
    "HWY_WANT_AVX3_DL=1",
    "HWY_DISABLED_TARGETS=HWY_SSSE3",
]

def _copts(copts):
    return WARNING_COPTS + select({
        "//:werror_enabled": ["-Werror"],
        "//conditions:default": [],
    }) + copts + NUMERICS_COPTS

def lanewise_cc_library(name, copts = [], local_defines = [], **kwargs):
    cc_library(name = name, copts = _copts(copts), local_defines = KERNEL_DEFINES + local_defines, **kwargs)

def lanewise_cc_binary(name, copts = [], local_defines = [], **kwargs):
    cc_binary(name = name, copts = _copts(copts), local_defines = KERNEL_DEFINES + local_defines, **kwargs)

def lanewise_cc_test(name, copts = [], local_defines = [], size = "small", **kwargs):
    cc_test(name = name, size = size, copts = _copts(copts), local_defines = KERNEL_DEFINES + local_defines, **kwargs)
