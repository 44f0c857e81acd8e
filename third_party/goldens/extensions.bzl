"""The golden data for MODULE.bazel."""

load(":goldens.bzl", "goldens")

def _impl(_ctx):
    goldens()

golden_data = module_extension(implementation = _impl)
