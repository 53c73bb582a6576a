{{- define "tilewright.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 48 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 48 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "tilewright.selector" -}}
app.kubernetes.io/name: tilewright
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: node
{{- end }}

{{- define "tilewright.etcdSelector" -}}
app.kubernetes.io/name: tilewright
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: etcd
{{- end }}

{{- define "tilewright.labels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "tilewright.authSecret" -}}
{{ .Values.auth.existingSecret | default (printf "%s-auth" (include "tilewright.name" .)) }}
{{- end }}

{{/* Base of all links; empty if links use the host of the request. */}}
{{- define "tilewright.publicUrl" -}}
{{- if .Values.proxy.publicUrl }}{{ .Values.proxy.publicUrl }}
{{- else if .Values.ingress.enabled }}{{ ternary "https" "http" (not (empty .Values.ingress.tlsSecret)) }}://{{ .Values.ingress.host }}
{{- end }}
{{- end }}

{{/* "true" or empty. */}}
{{- define "tilewright.isCluster" -}}
{{- if or .Values.etcd.enabled .Values.etcd.endpoints }}true{{ end }}
{{- end }}

{{/* Addresses of etcd, separated by commas. */}}
{{- define "tilewright.etcd" -}}
{{- if .Values.etcd.enabled }}
{{- $name := printf "%s-etcd" (include "tilewright.name" .) }}
{{- range $i := until 3 }}{{ if $i }},{{ end }}http://{{ $name }}-{{ $i }}.{{ $name }}.{{ $.Release.Namespace }}.svc:2379{{ end }}
{{- else }}{{ join "," .Values.etcd.endpoints }}{{ end }}
{{- end }}

{{/* Fails for values that exclude each other. */}}
{{- define "tilewright.check" -}}
{{- $v := .Values }}
{{- $cluster := include "tilewright.isCluster" . }}
{{- if and (gt (int $v.replicaCount) 1) (not $cluster) }}{{ fail "replicaCount is more than 1: set etcd.endpoints, or etcd.enabled, and store.url" }}{{ end }}
{{- if and $v.etcd.enabled $v.etcd.endpoints }}{{ fail "etcd.enabled makes an etcd, and etcd.endpoints names another: set one of them" }}{{ end }}
{{- if and $cluster (not $v.store.url) }}{{ fail "a cluster keeps its tiles in a store: set store.url" }}{{ end }}
{{- if and $v.store.url (not $cluster) }}{{ fail "store.url is for clusters: set etcd.endpoints or etcd.enabled" }}{{ end }}
{{- if not $v.auth.existingSecret }}
{{- if not $v.auth.token }}{{ fail "set auth.token or auth.existingSecret" }}{{ end }}
{{- if and $cluster (not $v.auth.clusterSecret) }}{{ fail "the nodes of a cluster know each other by a secret: set auth.clusterSecret or auth.existingSecret" }}{{ end }}
{{- end }}
{{- if ne (empty $v.store.s3.accessKeyId) (empty $v.store.s3.secretAccessKey) }}{{ fail "set both of store.s3.accessKeyId and store.s3.secretAccessKey, or neither" }}{{ end }}
{{- if and (eq $v.zone.from "value") (not $v.zone.value) }}{{ fail "zone.from is value: set zone.value" }}{{ end }}
{{- end }}
