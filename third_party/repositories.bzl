"""The dependencies for WORKSPACE files, of this workspace and of those that embed it:

    local_repository(name = "lanewise", path = "third_party/lanewise")
    load("@lanewise//third_party:repositories.bzl", "lanewise_repositories")
    lanewise_repositories()

Names are those of the Bazel Central Registry. A repository that is already defined is left as it is.
docs/dependencies.md says where each checksum comes from.
"""

load("@bazel_tools//tools/build_defs/repo:http.bzl", "http_archive")
load("//third_party/model:model.bzl", "default_model", "embedding_model", "speech_model")

# name: (url, prefix to strip, sha256, build file of ours)
_GITHUB = "https://github.com/"
_ARCHIVES = {
    "abseil-cpp": (
        _GITHUB + "abseil/abseil-cpp/releases/download/20240722.0/abseil-cpp-20240722.0.tar.gz",
        "abseil-cpp-20240722.0",
        "f50e5ac311a81382da7fa75b97310e4b9006474f9560ac46f54a9967f07d4ae3",
        None,
    ),
    "bazel_skylib": (
        _GITHUB + "bazelbuild/bazel-skylib/releases/download/1.7.1/bazel-skylib-1.7.1.tar.gz",
        "",
        "bc283cdfcd526a52c3201279cda4bc298652efa898b10b4db0837dc51652756f",
        None,
    ),
    "google_benchmark": (
        _GITHUB + "google/benchmark/archive/refs/tags/v1.9.1.tar.gz",
        "benchmark-1.9.1",
        "32131c08ee31eeff2c8968d7e874f3cb648034377dfc32a4c377fa8796d84981",
        None,
    ),
    "googletest": (
        _GITHUB + "google/googletest/releases/download/v1.16.0/googletest-1.16.0.tar.gz",
        "googletest-1.16.0",
        "78c676fc63881529bf97bf9d45948d905a66833fbfa5318ea2cd7478cb98f399",
        None,
    ),
    "highway": (
        _GITHUB + "google/highway/archive/refs/tags/1.2.0.tar.gz",
        "highway-1.2.0",
        "7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343",
        None,
    ),
    "nlohmann_json": (
        _GITHUB + "nlohmann/json/releases/download/v3.11.3/include.zip",
        "",
        "a22461d13119ac5c78f205d3df1db13403e58ce1bb1794edc9313677313f4a9d",
        "nlohmann_json",
    ),
    "pcre2": (
        _GITHUB + "PCRE2Project/pcre2/releases/download/pcre2-10.48/pcre2-10.48.tar.bz2",
        "pcre2-10.48",
        "b6c68fdf6f3ac31388b50aa89ff0fc49c00c987c16e7b5146491d12003f2c8ed",
        None,
    ),
    "platforms": (
        _GITHUB + "bazelbuild/platforms/releases/download/0.0.10/platforms-0.0.10.tar.gz",
        "",
        "218efe8ee736d26a3572663b374a253c012b716d8af0c07e842e82f238a0a7ee",
        None,
    ),
    "rules_cc": (
        _GITHUB + "bazelbuild/rules_cc/releases/download/0.0.17/rules_cc-0.0.17.tar.gz",
        "rules_cc-0.0.17",
        "abc605dd850f813bb37004b77db20106a19311a96b2da1c92b789da529d28fe1",
        None,
    ),
    "rules_license": (
        _GITHUB + "bazelbuild/rules_license/releases/download/0.0.7/rules_license-0.0.7.tar.gz",
        "",
        "4531deccb913639c30e5c7512a054d5d875698daeb75d8cf90f284375fe7c360",
        None,
    ),
    "utf8proc": (
        _GITHUB + "JuliaStrings/utf8proc/archive/refs/tags/v2.11.0.tar.gz",
        "utf8proc-2.11.0",
        "c24379b5fa0a429a1f9a3fc23b44a75f2b141a34c09146a529a55d20a5808070",
        "utf8proc",
    ),
}

def lanewise_repositories():
    """Defines what is not defined yet."""
    for name, (url, prefix, sha256, build_file) in _ARCHIVES.items():
        if not native.existing_rule(name):
            http_archive(
                name = name,
                build_file = Label("//third_party:%s.BUILD.bazel" % build_file) if build_file else None,
                sha256 = sha256,
                strip_prefix = prefix,
                url = url,
            )
    if not native.existing_rule("smollm2_135m_instruct"):
        default_model()
    if not native.existing_rule("all_minilm_l6_v2"):
        embedding_model()
    if not native.existing_rule("whisper_tiny_en"):
        speech_model()
