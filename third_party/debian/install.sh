#!/usr/bin/env bash
# install.sh HOME: Bazel and the pinned source archives, from Debian's packages,
# into HOME. Called by bazelw under its lock. Works in a folder beside HOME and
# renames it at the end, so an interrupted run leaves nothing behind.
set -euo pipefail
home=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(dirname "$home")/.new # one at a time: the caller holds the lock
suite=${BAZELW_SUITE:-forky}
sources_suite=trixie
say() { echo "bazelw: $*"; }
die() {
  say "$@"
  exit 1
}

# What a log gives as the reason: the first file that could not be fetched, else
# the last error, else the last line.
reason() {
  local line
  line=$(grep -am1 'Failed to fetch' "$1" || true)
  [[ -n $line ]] || line=$(grep -aE '^(E|W|dpkg|tar)[:-]' "$1" | tail -n1 || true)
  [[ -n $line ]] || line=$(grep -av '^[[:space:]]*$' "$1" | tail -n1 || true)
  echo "${line:-no reason given}"
}

other="or put bazelisk (or Bazel 7, 8 or 9) on PATH"
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
  die "found no Bazel, and no apt-get to install one: put bazelisk (or Bazel 7, 8 or 9) on PATH"
arch=$(dpkg --print-architecture)
case $arch in
  amd64 | arm64) ;;
  *) die "Bazel from Debian's packages is set up for amd64 and arm64 only, not $arch: put bazelisk (or Bazel 7, 8 or 9) on PATH" ;;
esac

rm -rf "$work"
mkdir -p "$work"/{apt/lists/partial,apt/archives/partial,debs,root,src,registry}
trap 'rm -rf "$work"' EXIT
log=$work/log

# --- What the system must have ------------------------------------------------
missing=()
g++ --version >/dev/null 2>&1 || missing+=(g++)
python3 --version >/dev/null 2>&1 || missing+=(python3)
xz --version >/dev/null 2>&1 || missing+=(xz-utils)
required=${missing[*]}
# Only the default model needs pip: its absence is no error here.
python3 -m pip --version >/dev/null 2>&1 || pip3 --version >/dev/null 2>&1 || missing+=(python3-pip)
if [[ ${#missing[@]} -gt 0 && $(id -u) == 0 ]]; then
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  install() { apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" >"$log" 2>&1 </dev/null; }
  install || { apt-get update -qq >"$log" 2>&1 && install; } ||
    [[ -z $required ]] || die "cannot install $required with apt-get: $(reason "$log")"
elif [[ -n $required ]]; then
  die "missing: $required. Run 'apt-get install $required' as root, then try again"
fi
patchelf=$(command -v patchelf || true) # else Debian's is fetched with the rest

# --- A private apt: the system's mirror, proxy and settings, other suites ------
# Reads the system's sources, which works before any `apt-get update` too.
find_mirror() {
  local codename
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null | tr -d '"')
  apt-get indextargets --no-release-info --format '$(CREATED_BY) $(RELEASE) $(COMPONENT) $(REPO_URI)' 2>/dev/null |
    awk -v codename="$codename" '
      $1 == "Packages" && $3 == "main" && $4 ~ /debian\/?$|^mirror/ &&
      ($2 == codename || $2 ~ /^(stable|oldstable|testing|unstable|sid|bookworm|trixie|forky)$/) { print $4; exit }'
}
mirror=${BAZELW_MIRROR:-$(find_mirror || true)}
[[ -n $mirror ]] || die "apt's sources name no Debian mirror: set BAZELW_MIRROR to one, $other"
for key in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do [[ ! -e $key ]] || break; done
[[ -e $key ]] || die "Debian's archive keys are missing: run 'apt-get install debian-archive-keyring' as root, $other"
{
  echo "deb [signed-by=$key] $mirror $suite main"
  echo "deb-src [signed-by=$key] $mirror $sources_suite main"
  echo "deb-src [signed-by=$key] $mirror forky main"
} >"$work/apt/sources.list"
touch "$work/apt/status"
# Given with -c, this is read after the system's own configuration: Acquire's
# proxies and the like stay, and these win. Hooks that touch the system go. A
# mirror may be a snapshot of an older day: packages are signed all the same.
cat >"$work/apt/apt.conf" <<C
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
Dir::Etc::sourcelist "$work/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$work/apt";
Dir::State::lists "$work/apt/lists";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt";
Dir::Cache::archives "$work/apt/archives";
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
APT::Install-Recommends "false";
APT::Get::List-Cleanup "false";
C
apt() { apt-get -c "$work/apt/apt.conf" "$@" </dev/null; }
say "reading Debian's package lists"
apt update -qq >"$log" 2>&1 || die "cannot read Debian's package lists from $mirror (network, proxy or mirror?): $(reason "$log")"

# --- Bazel: of the 249 packages that bazel-bootstrap depends on, the 65 that ---
# --- its client, server and Java load (about 150 MB) ---------------------------
jars='animal-sniffer|async-profiler|caffeine|checker-framework'
jars+='|commons-(collections3|compress|io|lang|lang3|pool2)|diffutils|error-prone|fastutil'
jars+='|google-(api-client|auth|auto-common|auto-service|auto-value|flogger|gson|http-client)'
jars+='|grpc|guava|hamcrest|java-allocation-instrumenter|javapoet|jcip-annotations|jcommander|jsr305'
jars+='|netty|netty-buffer|netty-common|perfmark|proguard|protobuf|reactive-streams|rx|slf4j|tomcat9|truth|xz'
want="bazel-.*|lib($jars)-java|velocity|openjdk-[0-9]+-jre-headless"
want+='|libc6|libgcc-s1|libstdc\+\+6|zlib1g|libabsl[0-9]+[a-z0-9]*|libcares2[a-z0-9]*'
want+='|libgrpc[0-9]+[a-z0-9]*|libgrpc\+\+1[a-z0-9.]*|libprotobuf[0-9]+[a-z0-9]*|libre2-[0-9]+[a-z0-9]*'
want+='|libssl[0-9][a-z0-9]*|libzstd1|libjpeg62-turbo|liblcms2-2|libpcsclite1'
packages=$(apt -s install bazel-bootstrap 2>"$log" | awk '/^Inst /{print $2}' | grep -Ex "$want" || true)
[[ -n $packages ]] || die "$mirror has no bazel-bootstrap in $suite: $(reason "$log")"
[[ -n $patchelf ]] || packages+=" patchelf"
say "downloading $(wc -w <<<"$packages") packages"
# shellcheck disable=SC2086  # a list of words
(cd "$work/debs" && apt download -qq $packages) >"$log" 2>&1 ||
  die "cannot download Bazel's packages from $mirror: $(reason "$log")"
say "unpacking"
for deb in "$work"/debs/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/root" --no-same-owner --exclude='./usr/share/doc*' \
    --exclude='./usr/share/locale*' --exclude='./usr/share/maven-repo*' --exclude='./usr/lib/*/gconv*' ||
    die "cannot unpack $(basename "$deb"): is the disk full?"
done 2>"$log"

# Bazel is built against a newer libc than this system may have: it and the Java
# that runs its server get the libc that came with them, by DT_RPATH (inherited
# by what they load; an environment variable would leak into build actions).
triplet=$(cd "$work/root/usr/lib" && for d in *-linux-gnu*; do echo "$d"; done | head -n1)
java=$(cd "$work/root" && for d in usr/lib/jvm/java-[0-9]*-openjdk-*; do echo "$d"; done | tail -n1)
loader=$(basename "$(echo "$work/root/usr/lib/$triplet"/ld-linux-*.so.*)")
libs=$home/root/usr/lib/$triplet
rpath=$libs:$home/root/$java/lib:$home/root/$java/lib/server
edit() {
  if [[ -n $patchelf ]]; then
    "$patchelf" "$@"
  else
    "$work/root/usr/lib/$triplet/$loader" --library-path "$work/root/usr/lib/$triplet" "$work/root/usr/bin/patchelf" "$@"
  fi
}
for f in "$work/root/usr/bin/bazel" "$work"/root/usr/libexec/*/bazel/* "$work/root/$java"/{bin/java,lib/jspawnhelper}; do
  [[ -L $f ]] || edit --set-interpreter "$libs/$loader" --force-rpath --set-rpath "$rpath" "$f" >"$log" 2>&1 ||
    die "patchelf failed on $(basename "$f"): $(reason "$log")"
done
# Absolute links (the Java configuration) become relative ones within the prefix.
find "$work/root" -type l -lname '/*' | while read -r link; do
  target=$(readlink "$link")
  [[ ! -e $work/root$target ]] || ln -sfnr "$work/root$target" "$link"
done
ln -sfn "root/$java" "$work/jre"
python3 "$here/classpath.py" "$work/root" "$home/root" 2>"$log" || die "cannot read Bazel's class path: $(reason "$log")"

# --- The pinned sources --------------------------------------------------------
say "fetching the pinned sources"
fetch() { # package, suite, sha256, folder
  # Only the upstream archive: its checksum is what counts, and mirrors lack some
  # packages' other files.
  local uri file
  uri=$(apt source --print-uris -qq "$1/$2" 2>"$log" | grep -E "\.orig\.tar\.(gz|bz2|xz)'" | head -n1 | cut -d"'" -f2 || true)
  [[ -n $uri ]] || die "$2 has no source package $1: $(reason "$log")"
  file=$work/src/$(basename "$uri")
  /usr/lib/apt/apt-helper -c "$work/apt/apt.conf" download-file "$uri" "$file" >"$log" 2>&1 </dev/null ||
    die "cannot download $uri: $(reason "$log")"
  echo "$3  $file" | sha256sum -c --quiet >"$log" 2>&1 || die "$uri does not have the pinned sha256 $3"
  mkdir "$work/src/$4"
  tar -xf "$file" -C "$work/src/$4" --strip-components=1 --no-same-owner 2>"$log" || die "cannot unpack $uri: $(reason "$log")"
  rm -f "$file"
}
fetch highway trixie 7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343 highway
fetch abseil trixie df6d1f5ef540725f3851201176a60486aab332410788465c9877910bb471c34a abseil-cpp
fetch googletest trixie 2f54382b5d13d6cd0be2afc524f1e510d37f8ba78c2d439c5bea64ef37e30d01 googletest
fetch benchmark trixie 32131c08ee31eeff2c8968d7e874f3cb648034377dfc32a4c377fa8796d84981 google_benchmark
fetch nlohmann-json3 trixie 0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406 nlohmann_json
fetch pcre2 forky ebcc25aadf2a51fa1fefa9b8bc9e7a79b3dae86870a0f1152a22e42befd46888 pcre2
fetch utf8proc forky abfed50b6d4da51345713661370290f4f4747263ee73dc90356299dfc7990c78 utf8proc
cp "$here/highway.MODULE.bazel" "$work/src/highway/MODULE.bazel" # the archive's own lacks platforms
# A header that 1.2.0's BUILD forgets (POWER).
sed -i 's#^        "hwy/ops/emu128-inl.h",#&\n        "hwy/ops/ppc_vsx-inl.h",#' "$work/src/highway/BUILD"
for m in nlohmann_json utf8proc; do # build files of ours, with the registry's labels
  rm -f "$work/src/$m"/{BUILD,BUILD.bazel,MODULE.bazel,WORKSPACE,WORKSPACE.bazel}
  cp "$here/../$m.BUILD.bazel" "$work/src/$m/BUILD.bazel"
  printf 'module(name = "%s")\nbazel_dep(name = "rules_cc", version = "0.0.17")\n' "$m" >"$work/src/$m/MODULE.bazel"
done

# --- Settings: every module comes from here, none from a registry ---------------
rules=(platforms=tools/platforms bazel_features=tools/features bazel_skylib=tools/skylib rules_cc=rules/cc
  rules_java=rules/java rules_license=rules/license rules_proto=rules/proto rules_python=rules/python)
sources=(highway abseil-cpp googletest nlohmann_json pcre2 utf8proc)
# google_benchmark is a development dependency: an override would be an error in
# workspaces that only embed this one, so it is the registry's single entry.
benchmark=$work/registry/modules/google_benchmark/1.9.5 # the version MODULE.bazel names
mkdir -p "$benchmark"
echo '{}' >"$work/registry/bazel_registry.json"
printf '{"type": "local_path", "path": "%s"}\n' "$home/src/google_benchmark" >"$benchmark/source.json"
{
  echo 'module(name = "google_benchmark", version = "1.9.5")'
  for m in bazel_skylib platforms rules_cc; do echo "bazel_dep(name = \"$m\", version = \"0.0.1\")"; done
} >"$benchmark/MODULE.bazel"
{
  echo "common --enable_bzlmod --noenable_workspace --lockfile_mode=off --registry=file://$home/registry"
  echo "common --disk_cache=$(dirname "$home")/disk --repository_cache=$(dirname "$home")/repos"
  for m in "${sources[@]}"; do echo "common --override_module=$m=$home/src/$m"; done
  for m in "${rules[@]}"; do echo "common --override_module=${m%%=*}=$home/root/usr/share/bazel/${m#*=}"; done
  # Modules that are only named, never loaded: empty ones.
  for m in apple_support buildozer protobuf re2 zlib; do
    mkdir -p "$work/empty/$m"
    echo "module(name = \"$m\")" >"$work/empty/$m/MODULE.bazel"
    touch "$work/empty/$m/BUILD.bazel"
    echo "common --override_module=$m=$home/empty/$m"
  done
  # --config=workspace: the same archives as WORKSPACE repositories.
  for m in "${sources[@]}" google_benchmark; do echo "common:workspace --override_repository=$m=$home/src/$m"; done
  for m in "${rules[@]}"; do
    d=$work/root/usr/share/bazel/${m#*=}
    [[ -e $d/WORKSPACE || -e $d/WORKSPACE.bazel ]] || touch "$d/WORKSPACE"
    echo "common:workspace --override_repository=${m%%=*}=$home/root/usr/share/bazel/${m#*=}"
  done
} >"$work/debian.bazelrc"
for m in "${sources[@]}" google_benchmark; do [[ -e $work/src/$m/WORKSPACE ]] || touch "$work/src/$m/WORKSPACE"; done
rm -rf "$work/debs" "$work/apt" "$log"
touch "$work/ok"
rm -rf "$home" # left by a version of this script that did not rename
mv -T "$work" "$home" || die "cannot move the installation to $home"
trap - EXIT
say "Bazel $(cat "$home/root/usr/share/bazel/build-label.txt") is ready in $home"
