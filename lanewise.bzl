"""The macros that every target of this project goes through.

They carry the floating-point flags of docs/design.md, section 2: a `.bazelrc` does not reach those who embed the
project, so flags that results depend on are set here. Other attributes are passed on as they are (a public header is
given `strip_include_prefix` and `include_prefix`).
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

# Bazel puts these after --copt and --cxxopt, so an embedding project's -ffast-math is undone (tests/build checks it).
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
KERNEL_DEFINES = ["HWY_WANT_AVX3_DL=1"]
ALL_TARGETS = ["HWY_DISABLED_TARGETS=HWY_SSSE3"]

# One x86 target of each kind: AVX3_DL (512 bits, VNNI), AVX2 (FMA, 256 bits), SSE2 (no FMA).
FEW_TARGETS = ["'HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3|HWY_AVX3_ZEN4|HWY_AVX3_SPR)'"]

_WERROR_ENABLED = str(Label("//:werror_enabled"))
_FEW_TARGETS = str(Label("//:few_targets"))

def _attributes(copts, local_defines, kwargs):
    return dict(
        kwargs,
        copts = WARNING_COPTS + select({
            _WERROR_ENABLED: ["-Werror"],
            "//conditions:default": [],
        }) + copts + NUMERICS_COPTS,
        local_defines = KERNEL_DEFINES + select({
            _FEW_TARGETS: FEW_TARGETS,
            "//conditions:default": ALL_TARGETS,
        }) + local_defines,
    )

def lanewise_cc_library(name, copts = [], local_defines = [], **kwargs):
    cc_library(name = name, **_attributes(copts, local_defines, kwargs))

def lanewise_cc_binary(name, copts = [], local_defines = [], **kwargs):
    cc_binary(name = name, **_attributes(copts, local_defines, kwargs))

def lanewise_cc_test(name, copts = [], local_defines = [], size = "small", **kwargs):
    cc_test(name = name, size = size, **_attributes(copts, local_defines, kwargs))
