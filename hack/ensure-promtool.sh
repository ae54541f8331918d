#!/usr/bin/env bash
# Makes sure that a promtool as distributions ship it, 2.42 or newer, is in bin/debian, and the Prometheus of the same package beside it, for
# the lab: rules must be good for an old Prometheus, too, and the newest is built from source by the test itself. It takes the programs out of
# Debian's or Ubuntu's package without installing it, so that no service starts and nothing outside of bin changes. EVICTRAIL_PROMTOOL may name
# another one; anywhere else it says what to do and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

oldest=2.42
here=bin/debian/promtool

say() { echo "ensure-promtool: $*" >&2; }

# good reports whether the program is a promtool that is new enough.
good() {
  local version
  version=$("$1" --version 2>&1 | sed -nE 's/^promtool, version ([0-9]+\.[0-9]+).*/\1/p')
  [[ -n $version && $(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1) == "$oldest" ]]
}

explain() {
  say "no promtool, $oldest or newer: $1."
  say "It is in the package prometheus of Debian and Ubuntu and in every release of Prometheus: get one from there and set"
  say "EVICTRAIL_PROMTOOL to its path"
  exit 1
}

if [[ -n ${EVICTRAIL_PROMTOOL:-} ]]; then
  if good "$EVICTRAIL_PROMTOOL"; then exit 0; fi
  explain "EVICTRAIL_PROMTOOL=$EVICTRAIL_PROMTOOL is none"
fi
if good "$here" 2>/dev/null && [[ -x bin/debian/prometheus ]]; then exit 0; fi

command -v apt-get >/dev/null || explain "there is no apt-get here"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

download() { (cd "$work" && apt-get download prometheus) </dev/null >>"$work/log" 2>&1; }

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

say "taking promtool and prometheus out of the package prometheus, into bin/debian"
if ! download; then
  as_root apt-get -o DPkg::Lock::Timeout=300 update </dev/null >>"$work/log" 2>&1 || true # one broken source does not matter
  download || { tail -n 5 "$work/log" >&2; explain "apt-get cannot download the package prometheus"; }
fi
dpkg-deb -x "$work"/prometheus_*.deb "$work/package"
good "$work/package/usr/bin/promtool" || explain "the one of this system is older, or does not run"
mkdir -p "$(dirname "$here")"
mv "$work/package/usr/bin/promtool" "$work/package/usr/bin/prometheus" bin/debian
