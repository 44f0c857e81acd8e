#!/usr/bin/env bash
# bazelw_test.sh: bazelw finds the right Bazel, or says in one line why there is
# none and leaves nothing behind. Downloads nothing; takes a few seconds.
set -u
bazelw=$(cd "$(dirname "$0")/../.." && pwd)/bazelw
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failures=0

# A PATH with these commands of the system only; $tmp/bin holds the stubs.
tools=(awk basename bash cat chmod cut dirname env find flock grep head id ln mkdir mktemp mv
  readlink rm sed sha256sum tail tar touch tr wc)
fresh() { # more commands of the system
  rm -rf "$tmp/bin" "$tmp/home"
  mkdir -p "$tmp/bin" "$tmp/home"
  local c
  for c in "${tools[@]}" "$@"; do
    if command -v "$c" >/dev/null; then ln -s "$(command -v "$c")" "$tmp/bin/$c"; fi
  done
}
stub() { # name, script
  rm -f "$tmp/bin/$1"
  printf '#!/bin/bash\n%s\n' "$2" >"$tmp/bin/$1"
  chmod +x "$tmp/bin/$1"
}
# Runs bazelw with nothing but the given environment; sets $out, $err, $code.
run() {
  out=$(env -i PATH="$tmp/bin" HOME="$tmp/home" "${environment[@]}" "$bazelw" "$@" 2>"$tmp/err" </dev/null)
  code=$?
  err=$(cat "$tmp/err")
}
check() { # description, condition
  if eval "$2"; then
    echo "ok: $1"
  else
    echo "FAILED: $1 [code $code] [out: $out] [err: $err]"
    failures=$((failures + 1))
  fi
}
# Fails with code 1, nothing on stdout, and one last line on stderr with the text.
check_text() { # description, text
  if [[ $code == 1 && -z $out && $(tail -n1 <<<"$err") == "bazelw: "*"$2"* ]]; then
    echo "ok: $1"
  else
    echo "FAILED: $1: expected '$2' [code $code] [out: $out] [err: $err]"
    failures=$((failures + 1))
  fi
}
nothing_left() { # no installation, no working folder
  check "  and leaves nothing behind" '[[ -z $(find "$tmp/home" -mindepth 3 ! -name lock) ]]'
}
# An apt without network access: a mirror where nothing listens.
apt_stubs() {
  fresh apt-get apt-helper dpkg dpkg-deb g++ python3 xz
  stub g++ 'exit 0'
  stub python3 'exit 0'
  environment=(BAZELW_DEBIAN=1 BAZELW_MIRROR=http://127.0.0.1:9/debian)
}

environment=(X=1)
fresh
stub bazelisk 'echo "bazelisk $*"'
stub bazel 'echo "bazel 7.7.1"'
run test //... --x='a b'
check "bazelisk is used with its arguments unchanged" '[[ $code == 0 && $out == "bazelisk test //... --x=a b" && -z $err ]]'

stub mybazel 'echo "mine $*"; exit 3'
environment=(BAZEL="$tmp/bin/mybazel")
run info
check "\$BAZEL comes first, its exit code is passed on" '[[ $code == 3 && $out == "mine info" ]]'
environment=(BAZEL=/nonexistent/bazel)
run info
check_text "a wrong \$BAZEL is named" "/nonexistent/bazel"

environment=(X=1)
for version in 7.0.0 8.4.2 9.0.0; do
  fresh
  stub bazel '[[ $1 == --version ]] && echo "bazel '$version'" || echo "found $*"'
  run build x
  check "bazel $version is used" '[[ $code == 0 && $out == "found build x" ]]'
done
for version in "bazel 4.2.3" "bazel no_version" "bazel 10.0.0"; do
  fresh
  stub bazel "echo '$version'"
  run build x
  check_text "'$version' is not used; without apt-get bazelisk is recommended" "put bazelisk"
done
nothing_left

fresh
run build x
check_text "no Bazel and no apt-get" "no apt-get to install one"
nothing_left

apt_stubs
stub dpkg 'echo m68k'
run build x
check_text "an architecture that is not supported" "not m68k"
nothing_left

apt_stubs
rm "$tmp/bin/g++"
stub id 'echo 1000'
run build x
check_text "no g++ for an ordinary user" "missing: g++. Run 'apt-get install g++' as root"
nothing_left

apt_stubs
rm "$tmp/bin/g++"
stub id 'echo 0'
stub apt-get 'echo "E: Unable to locate package g++" >&2; exit 100'
run build x
check_text "no g++ for root, and apt-get cannot install it" "cannot install g++ with apt-get: E: Unable to locate package g++"
nothing_left

if command -v apt-get >/dev/null; then
  apt_stubs
  run build x
  check_text "a mirror that does not answer" "cannot read Debian's package lists from http://127.0.0.1:9/debian"
  check "  in one line after the progress" '[[ $(wc -l <<<"$err") == 2 ]]'
  nothing_left

  apt_stubs
  environment=(BAZELW_DEBIAN=1 BAZELW_MIRROR=http://debian.invalid/debian http_proxy=http://127.0.0.1:9)
  run build x
  check_text "a proxy that does not answer is the one asked" "127.0.0.1"
  nothing_left

  apt_stubs
  mkdir "$tmp/apt"
  echo 'Acquire::http::Proxy "http://127.0.0.1:10";' >"$tmp/apt/conf"
  environment=(BAZELW_DEBIAN=1 BAZELW_MIRROR=http://debian.invalid/debian APT_CONFIG="$tmp/apt/conf")
  run build x
  check_text "apt's own proxy setting is kept" "127.0.0.1"
  nothing_left
fi

apt_stubs
stub apt-get 'exit 0'
environment=(BAZELW_DEBIAN=1)
run build x
check_text "apt's sources name no Debian mirror" "set BAZELW_MIRROR"
nothing_left

apt_stubs
stub apt-get 'case "$*" in *install*) ;; *) exit 0 ;; esac'
run build x
check_text "the suite has no Bazel" "has no bazel-bootstrap in forky"
nothing_left

apt_stubs
stub apt-get 'case "$*" in *-s\ install*) echo "Inst bazel-bootstrap (7)" ;; *download*) echo "E: no space" >&2; exit 100 ;; esac'
run build x
check_text "a package cannot be downloaded" "cannot download Bazel's packages from http://127.0.0.1:9/debian: E: no space"
nothing_left

apt_stubs
environment=(BAZELW_DEBIAN=1 BAZELW_CACHE=/proc/nowhere)
run build x
check_text "a cache that cannot be written" "cannot write to /proc/nowhere: set BAZELW_CACHE"
environment=(BAZELW_DEBIAN=1)
out=$(env -i PATH="$tmp/bin" BAZELW_DEBIAN=1 "$bazelw" build x 2>"$tmp/err" </dev/null)
code=$?
err=$(cat "$tmp/err")
check_text "no HOME" "HOME is not set"

# Two at once: the second waits for the first, and what an earlier one that was
# killed left is swept away.
apt_stubs
mkdir -p "$tmp/home/.cache/lanewise/.new/root"
stub apt-get 'echo x >>"'"$tmp"'/calls"; sleep 1; exit 100'
ln -s "$(command -v sleep)" "$tmp/bin/sleep"
(env -i PATH="$tmp/bin" HOME="$tmp/home" BAZELW_DEBIAN=1 BAZELW_MIRROR=http://127.0.0.1:9/ "$bazelw" x 2>/dev/null </dev/null) &
sleep 0.4
run build x
wait
check "a second run waits for the first" '[[ $code == 1 && $err == *"waiting for another bazelw"* ]]'
nothing_left

if [[ $failures == 0 ]]; then echo "bazelw_test: all passed"; else echo "bazelw_test: $failures failed"; fi
[[ $failures == 0 ]]
