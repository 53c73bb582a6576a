#!/usr/bin/env bash
# Checks deploy/: the Helm chart with every set of values in its ci/ folder, the compose file, the Dockerfile.
# usage: tools/check-deploy.sh chart|compose|dockerfile
# Exit codes: 0 valid, 1 invalid, 77 a tool is missing (tools/install-deploy-tools.sh installs them; those on PATH work too).
set -euo pipefail
cd "$(dirname "$0")/../deploy"
tools=${TILEWRIGHT_DEPLOY_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/tilewright/deploy-tools}
PATH="$tools:$PATH"
need() {
  for name in "$@"; do
    command -v "$name" > /dev/null || { echo "$name is missing; tools/install-deploy-tools.sh installs it" >&2; exit 77; }
  done
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The oldest version that the chart supports, and the newest one with installed schemas.
versions="1.27 1.37"

chart() {
  need helm kubernetes-validate
  for values in helm/tilewright/ci/*-values.yaml; do
    helm lint --strict --quiet helm/tilewright --values "$values" --kube-version "${versions%% *}"
    helm template tilewright helm/tilewright --namespace tiles --values "$values" --kube-version "${versions%% *}" \
      > "$work/$(basename "$values")"
  done
  # Only documents of the Prometheus operator may lack a schema.
  for version in $versions; do
    kubernetes-validate --strict --quiet -k "$version" "$work"/*-values.yaml 2>&1 |
      grep -vE 'kind (ServiceMonitor|PrometheusRule)' >> "$work/faults" || true
  done
  if [ -s "$work/faults" ]; then
    cat "$work/faults" >&2
    return 1
  fi
}

# Prints the file as it is understood, as JSON. The reader does not know the variables, so they are put in here; one that
# env.example lacks stays, and is refused.
compose() {
  need compose-spec
  script=$(sed -nE 's|^([A-Z0-9_]+)=(.*)$|s/\\$\\{\1:[^}]*\\}/\2/g|p' env.example)
  sed -E "$script" compose.yaml > "$work/compose.yaml"
  compose-spec --no-path-resolution --format json "$work/compose.yaml"
}

dockerfile() {
  need hadolint
  hadolint Dockerfile
}

case "${1:-}" in
  chart | compose | dockerfile) "$1" ;;
  *) echo "usage: tools/check-deploy.sh chart|compose|dockerfile" >&2; exit 2 ;;
esac
