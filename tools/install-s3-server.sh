#!/usr/bin/env bash
# Installs the S3 server for tests of the object store: the Versity S3 gateway, a Go program that serves a folder.
# usage: tools/install-s3-server.sh [FOLDER]      default: ~/.cache/tilewright/bin, where the tests look too
# Needs Go 1.25 or newer. Takes a few minutes the first time, and does nothing if it is installed already.
set -euo pipefail
version=v1.8.0
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/tilewright/bin}
[ -x "$folder/versitygw-$version" ] && exit 0
go=$(command -v go || echo /usr/local/go/bin/go)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
CGO_ENABLED=0 GOBIN="$build" "$go" install -ldflags='-s -w' "github.com/versity/versitygw/cmd/versitygw@$version"
mkdir -p "$folder"
mv "$build/versitygw" "$folder/versitygw-$version"
