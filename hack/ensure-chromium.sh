#!/usr/bin/env bash
# Makes sure that there is a Chromium: the tests of the web page look at it in a real browser, without a window. Where there is
# none it installs Debian's package as root or by a sudo that asks nothing. EVICTRAIL_CHROMIUM may name another; anywhere else it
# says what to do and fails. test/browser looks in the same places.
set -euo pipefail

say() { echo "ensure-chromium: $*" >&2; }

good() { [[ $("$1" --version 2>/dev/null) =~ ^(Chromium|Google Chrome)\  ]]; }

found() {
  local name
  if [[ -n ${EVICTRAIL_CHROMIUM:-} ]]; then
    if good "$EVICTRAIL_CHROMIUM"; then return 0; fi
    say "EVICTRAIL_CHROMIUM=$EVICTRAIL_CHROMIUM is not a Chromium"
    exit 1
  fi
  for name in chromium chromium-browser google-chrome; do
    if good "$name"; then return 0; fi
  done
  return 1
}

explain() {
  say "there is no Chromium, and $1."
  say "It is in the package chromium of Debian, Fedora and Homebrew: get it from there, or set EVICTRAIL_CHROMIUM to one's path"
  exit 1
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1
}

if found; then exit 0; fi

command -v apt-get >/dev/null || explain "there is no apt-get here"
if [[ $(id -u) -ne 0 ]] && ! sudo -n true 2>/dev/null; then
  explain "installing it takes root or a sudo that asks for no password"
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
say "installing the package chromium by apt-get: the tests of the web page run it without a window"
apt update || true # one broken source does not matter as long as the package can be installed
if ! apt install -y --no-install-recommends chromium; then
  tail -n 20 "$log" >&2
  explain "apt-get cannot install it, see above"
fi
found || explain "what apt-get installed does not run"
