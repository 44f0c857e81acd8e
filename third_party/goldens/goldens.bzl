"""@goldens: expected values of the reference implementation, kept outside the tree.

The folder is named by the environment variable `LANEWISE_GOLDEN` (an absolute path). Where that is unset, or names no
folder, every group is empty: tests then have no outside cases and run those in the tree only.

    lanewise_cc_test(
        name = "tokenizer_golden_test",
        srcs = ["tokenizer_golden_test.cc"],
        data = ["@goldens//:tokenizers"],   # reruns the test when one of them changes
        deps = ["@goldens//:root_header"],  # golden_root.h: lanewise::kGoldenRoot, "" without goldens
    )

`@goldens//:root` is a text file with the same: the folder's absolute path, or nothing.
"""

GROUPS = ["gguf", "kernels", "models", "real", "templates", "tokenizers", "vocab"]

def _goldens_impl(ctx):
    root = ctx.os.environ.get("LANEWISE_GOLDEN", "")
    if root and not root.startswith("/"):
        fail("LANEWISE_GOLDEN is '%s': not an absolute path" % root)
    if root and not ctx.path(root).exists:
        root = ""
    build = """\
load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

filegroup(
    name = "root",
    srcs = ["golden_root.txt"],
)

cc_library(
    name = "root_header",
    hdrs = ["golden_root.h"],
    includes = ["."],
)
"""
    for group in GROUPS:
        if root and ctx.path(root + "/" + group).exists:
            ctx.symlink(root + "/" + group, "root/" + group)
        build += """
filegroup(
    name = "{group}",
    srcs = glob(["root/{group}/**"], allow_empty = True),
)
""".format(group = group)
    ctx.file("golden_root.txt", root)
    ctx.file("golden_root.h", """\
#ifndef LANEWISE_GOLDEN_ROOT_H_
#define LANEWISE_GOLDEN_ROOT_H_

namespace lanewise {

// The folder with the golden data, an absolute path; "" if there is none.
constexpr char kGoldenRoot[] = "%s";

}  // namespace lanewise

#endif  // LANEWISE_GOLDEN_ROOT_H_
""" % root.replace("\\", "\\\\").replace("\"", "\\\""))
    ctx.file("BUILD.bazel", build)

goldens_repository = repository_rule(
    implementation = _goldens_impl,
    environ = ["LANEWISE_GOLDEN"],
    local = True,  # looks again each time the Bazel server starts
)

def goldens():
    goldens_repository(name = "goldens")
