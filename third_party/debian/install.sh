#!/usr/bin/env bash
# install.sh DIR: Bazel and the pinned source archives, from Debian's packages, into DIR. Needs apt, dpkg-deb, patchelf.
set -euo pipefail
home=$1; here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
suite=${BAZELW_SUITE:-forky}
say() { echo "bazelw: $*"; }
rm -rf "$home"; mkdir -p "$home"/{apt/lists/partial,apt/archives/partial,debs,root,src}
patchelf=$(command -v patchelf || true)
g++ --version >/dev/null 2>&1 || { say "installing g++"; apt-get install -y -qq --no-install-recommends g++ >/dev/null; }

# a private apt: this machine's own mirror, other suites, nothing of the system's state is touched
find_mirror() { apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' | awk '$2 !~ /security|updates|backports/ && $1 ~ /\/debian\/?$/ {print $1; exit}'; }
mirror=$(find_mirror)
[[ -n $mirror ]] || { apt-get update -qq; mirror=$(find_mirror); }  # the lists of a fresh machine may be empty
[[ -n $mirror ]] || { say "no Debian mirror found in apt's sources"; exit 1; }
k=/usr/share/keyrings/debian-archive-keyring.gpg
{ echo "deb [signed-by=$k] $mirror $suite main"; echo "deb-src [signed-by=$k] $mirror trixie main"; echo "deb-src [signed-by=$k] $mirror forky main"; } > "$home/apt/sources.list"
touch "$home/apt/status"
cat > "$home/apt/apt.conf" <<C
Dir::Etc::sourcelist "$home/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$home/apt"; Dir::State::lists "$home/apt/lists"; Dir::State::status "$home/apt/status";
Dir::Cache "$home/apt"; Dir::Cache::archives "$home/apt/archives";
Acquire::Languages "none"; Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
APT::Sandbox::User "root"; Acquire::Retries "3"; APT::Install-Recommends "false"; APT::Get::List-Cleanup "false";
C
export APT_CONFIG=$home/apt/apt.conf
say "reading Debian's package lists"; apt-get update -qq

# of the 249 packages that bazel-bootstrap depends on, those its client, server and JRE load (65, about 150 MB)
jars='animal-sniffer|async-profiler|caffeine|checker-framework|commons-(collections3|compress|io|lang|lang3|pool2)|diffutils|error-prone|fastutil|google-(api-client|auth|auto-common|auto-service|auto-value|flogger|gson|http-client)|grpc|guava|hamcrest|java-allocation-instrumenter|javapoet|jcip-annotations|jcommander|jsr305|netty|netty-buffer|netty-common|perfmark|proguard|protobuf|reactive-streams|rx|slf4j|tomcat9|truth|xz'
want="bazel-.*|lib($jars)-java|velocity|openjdk-[0-9]+-jre-headless|libc6|libgcc-s1|libstdc\+\+6|zlib1g|libabsl[0-9]+[a-z0-9]*|libcares2[a-z0-9]*|libgrpc[0-9]+[a-z0-9]*|libgrpc\+\+1[a-z0-9.]*|libprotobuf[0-9]+[a-z0-9]*|libre2-[0-9]+[a-z0-9]*|libssl[0-9][a-z0-9]*|libzstd1|libjpeg62-turbo|liblcms2-2|libpcsclite1"
pk=$(apt-get -s install bazel-bootstrap | awk '/^Inst /{print $2}' | grep -Ex "$want" || true)
[[ -z $patchelf ]] && pk="$pk patchelf"
[[ -n $pk ]] || { say "$suite has no bazel-bootstrap"; exit 1; }
say "downloading $(wc -w <<<"$pk") packages"; (cd "$home/debs" && apt-get download -qq $pk)
say "unpacking"; for d in "$home"/debs/*.deb; do dpkg-deb --fsys-tarfile "$d" | tar -x -C "$home/root" --exclude='./usr/share/doc*' --exclude='./usr/share/locale*' --exclude='./usr/share/maven-repo*' --exclude='./usr/lib/x86_64-linux-gnu/gconv*'; done

P=$home/root; L=$P/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
J=$(echo "$P"/usr/lib/jvm/java-[0-9]*-openjdk-*); J=${J##* }; ln -sfn "$J" "$home/jre"
ld=$(echo "$L"/ld-linux-*.so.*); rpath=$L:$J/lib:$J/lib/server
if [[ -z $patchelf ]]; then patchelf=$P/usr/bin/patchelf; pe() { "$ld" --library-path "$L" "$patchelf" "$@"; }; else pe() { "$patchelf" "$@"; }; fi
for f in "$P/usr/bin/bazel" "$P"/usr/libexec/*/bazel/* "$J/bin/java" "$J/lib/jspawnhelper"; do
  [[ -L $f ]] || pe --set-interpreter "$ld" --force-rpath --set-rpath "$rpath" "$f"
done
# absolute links (JRE configuration) into the prefix
find "$P" -type l -lname '/*' | while read -r l; do t=$(readlink "$l"); [[ $t == "$P"/* || ! -e $P$t ]] || ln -sfn "$P$t" "$l"; done
python3 "$here/classpath.py" "$P"

say "fetching the pinned sources"
fetch() { # package, suite, sha256, directory
  # only the upstream archive: some packages' .dsc is missing from mirrors, and the checksum is what counts
  local line uri f
  line=$(apt-get source --print-uris -qq "$1/$2" | grep -E "\.orig\.tar\.(gz|bz2|xz)'" | head -n1)
  uri=$(cut -d"'" -f2 <<<"$line"); f=$home/src/$(basename "$uri")
  [[ -n $uri ]] || { say "$2 has no source package $1"; exit 1; }
  /usr/lib/apt/apt-helper download-file "$uri" "$f" "SHA256:$3" >/dev/null 2>&1 || { say "cannot download $uri"; exit 1; }
  echo "$3  $f" | sha256sum -c --quiet || { say "$uri: wrong sha256"; exit 1; }
  mkdir "$home/src/$4"; tar -xf "$f" -C "$home/src/$4" --strip-components=1; rm -f "$f"
}
fetch highway trixie 7e0be78b8318e8bdbf6fa545d2ecb4c90f947df03f7aadc42c1967f019e63343 highway
fetch abseil trixie df6d1f5ef540725f3851201176a60486aab332410788465c9877910bb471c34a abseil-cpp
fetch googletest trixie 2f54382b5d13d6cd0be2afc524f1e510d37f8ba78c2d439c5bea64ef37e30d01 googletest
fetch benchmark trixie 32131c08ee31eeff2c8968d7e874f3cb648034377dfc32a4c377fa8796d84981 google_benchmark
fetch nlohmann-json3 trixie 0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406 nlohmann_json
fetch pcre2 forky ebcc25aadf2a51fa1fefa9b8bc9e7a79b3dae86870a0f1152a22e42befd46888 pcre2
fetch utf8proc forky abfed50b6d4da51345713661370290f4f4747263ee73dc90356299dfc7990c78 utf8proc
cp "$here/highway.MODULE.bazel" "$home/src/highway/MODULE.bazel"   # the archive's own lacks bazel_dep platforms
sed -i 's#^        "hwy/ops/emu128-inl.h",#&\n        "hwy/ops/ppc_vsx-inl.h",#' "$home/src/highway/BUILD"  # not listed in 1.2.0's BUILD
for m in nlohmann_json utf8proc; do  # build files of ours, with the labels of the Central Registry
  rm -f "$home/src/$m"/{BUILD,BUILD.bazel,MODULE.bazel,WORKSPACE,WORKSPACE.bazel}
  cp "$here/../$m.BUILD.bazel" "$home/src/$m/BUILD.bazel"
  printf 'module(name = "%s")\nbazel_dep(name = "rules_cc", version = "0.0.17")\n' "$m" > "$home/src/$m/MODULE.bazel"
done

mkdir -p "$home/registry"; echo '{}' > "$home/registry/bazel_registry.json"  # empty: no module may be looked up
{
  echo "common --enable_bzlmod --noenable_workspace --lockfile_mode=off --registry=file://$home/registry"
  echo "common --disk_cache=$(dirname "$home")/disk --repository_cache=$(dirname "$home")/repos"
  for m in highway abseil-cpp googletest google_benchmark nlohmann_json pcre2 utf8proc; do echo "common --override_module=$m=$home/src/$m"; done
  for m in platforms=tools/platforms bazel_features=tools/features bazel_skylib=tools/skylib rules_cc=rules/cc rules_java=rules/java rules_license=rules/license rules_proto=rules/proto rules_python=rules/python; do
    echo "common --override_module=${m%%=*}=$P/usr/share/bazel/${m#*=}"; done
  # modules that are only named, never loaded: empty ones
  for m in apple_support buildozer libpfm protobuf re2 rules_foreign_cc zlib; do
    mkdir -p "$home/empty/$m"; echo "module(name = \"$m\")" > "$home/empty/$m/MODULE.bazel"; touch "$home/empty/$m/BUILD.bazel"
    echo "common --override_module=$m=$home/empty/$m"; done
} > "$home/debian.bazelrc"
rm -rf "$home/debs" "$home/apt"
touch "$home/ok"; say "Bazel $(cat "$P/usr/share/bazel/build-label.txt") is ready in $home"
