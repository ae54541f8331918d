#!/usr/bin/env bash
# Builds the plugins of consoles into a folder: hack/build-plugins.sh FOLDER VERSION. Packages are installed by their
# lock file, and again only when that has changed; the plugins are built again only when what they are made of has.
set -euo pipefail
out=$(realpath -m "$1")
version=$2
cd "$(dirname "$0")/.."

hack/ensure-npm.sh
cd deploy/plugins

# sum prints a checksum of files; up_to_date reports whether a mark has it.
sum() { find "$@" -type f -print0 | LC_ALL=C sort -z | xargs -0 cksum | cksum; }
up_to_date() { [[ $(cat "$1" 2>/dev/null || true) == "$2" ]]; }

installed=node_modules/.evictrail-installed
packages=$(sum package.json package-lock.json .npmrc)
if ! up_to_date "$installed" "$packages"; then
  npm ci --ignore-scripts --silent </dev/null
  echo "$packages" >"$installed"
fi

built=$out/.built
sources="$version $packages $(sum build.js tsconfig.json shared headlamp console)"
if ! up_to_date "$built" "$sources"; then
  rm -f "$built"
  node build.js --out "$out" --version "$version"
  echo "$sources" >"$built"
fi
