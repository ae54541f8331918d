{{- define "evictrail.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The name of all objects. 40 characters leave room for what is added, "-0" of a pod among it. */ -}}
{{- define "evictrail.fullname" -}}
{{- $name := include "evictrail.name" . }}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $full .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "evictrail.selector" -}}
app.kubernetes.io/name: {{ include "evictrail.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "evictrail.labels" -}}
{{ include "evictrail.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: evictrail
{{- end }}

{{- define "evictrail.serviceAccount" -}}
{{- default (.Values.serviceAccount.create | ternary (include "evictrail.fullname" .) "default") .Values.serviceAccount.name }}
{{- end }}

{{- define "evictrail.image" -}}
{{- $image := .Values.image.repository }}
{{- if .Values.image.digest }}{{ $image }}@{{ .Values.image.digest }}{{ else }}{{ $image }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ end }}
{{- end }}

{{- /* Nine tenths of a limit of memory, in bytes: what GOMEMLIMIT is set to, so that the collector of garbage works harder before the kernel kills. */ -}}
{{- define "evictrail.gomemlimit" -}}
{{- $limit := toString . }}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 }}
{{- $unit := regexFind "[A-Za-z]*$" $limit }}
{{- if not (hasKey $units $unit) }}
{{- fail (printf "resources.limits.memory %s: expected a number with Ki, Mi, Gi, k, M, G or nothing" $limit) }}
{{- end }}
{{- mulf (trimSuffix $unit $limit | float64) (get $units $unit) 0.9 | floor | int64 }}
{{- end }}

{{/* Four fifths of the spool's volume, in bytes: the rest is for what its file takes beside the facts. */}}
{{- define "evictrail.spool.bytes" -}}
{{- $units := dict "" 1 "K" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- $unit := regexFind "[A-Za-z]*$" . }}
{{- mulf (trimSuffix $unit . | float64) (get $units $unit) 0.8 | floor | int64 }}
{{- end }}

{{- define "evictrail.podSecurity" -}}
runAsNonRoot: true
{{- if not .Values.openshift }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "evictrail.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* How the schema's owner connects: as database, but for what is said about it. */ -}}
{{- define "evictrail.owner" -}}
{{- $owner := deepCopy .Values.database }}
{{- with .Values.schema.database }}
{{- if .url }}{{ $_ := set $owner "url" .url }}{{ end }}
{{- if .passwordSecret.name }}{{ $_ := set $owner "passwordSecret" .passwordSecret }}{{ end }}
{{- if .clientCertificateSecret }}{{ $_ := set $owner "clientCertificateSecret" .clientCertificateSecret }}{{ end }}
{{- end }}
{{- toYaml $owner }}
{{- end }}

{{- /* Where a database is, as the value of EVICTRAIL_DATABASE_URL: a dict of its values. */ -}}
{{- define "evictrail.database.url" -}}
{{- $query := list (printf "sslmode=%s" .sslmode) }}
{{- if .caSecret.name }}{{ $query = append $query "sslrootcert=/etc/evictrail/database/ca.crt" }}{{ end }}
{{- if .clientCertificateSecret }}{{ $query = concat $query (list "sslcert=/etc/evictrail/database/tls.crt" "sslkey=/etc/evictrail/database/tls.key") }}{{ end }}
{{- range $key, $value := .parameters }}{{ $query = append $query (printf "%s=%s" $key (toString $value | urlquery)) }}{{ end }}
{{- required "database.url: say where PostgreSQL is, such as postgres://evictrail@db.example:5432/evictrail" .url }}?{{ join "&" $query }}
{{- end }}

{{- /* Where its standby is, the same way: of the parameters but for the one that asks for a primary. */ -}}
{{- define "evictrail.database.readURL" -}}
{{- $standby := dict "url" .readURL "parameters" (omit .parameters "target_session_attrs") }}
{{- include "evictrail.database.url" (mergeOverwrite (omit (deepCopy .) "parameters") $standby) }}
{{- end }}

{{- /* The volume of a database's secrets: its sources, nothing where there are none. */ -}}
{{- define "evictrail.database.sources" -}}
{{- with .passwordSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: password}]}
{{- end }}{{ end }}
{{- with .caSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}{{ end }}
{{- with .clientCertificateSecret }}
- secret: {name: {{ . }}, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
{{- end }}
{{- end }}

{{- /* A pod that asks the database one thing and ends: a dict of root, database and args. */ -}}
{{- define "evictrail.once" -}}
{{- $sources := include "evictrail.database.sources" .database -}}
restartPolicy: Never
automountServiceAccountToken: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext: {{- include "evictrail.podSecurity" .root | nindent 2 }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
containers:
- name: evictrail
  image: {{ include "evictrail.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
  {{- range .args }}
  - {{ . }}
  {{- end }}
  {{- if .database.passwordSecret.name }}
  - --database-password-file=/etc/evictrail/database/password
  {{- end }}
  {{- if ne .database.sslmode "verify-full" }}
  - --database-insecure
  {{- end }}
  env:
  - name: EVICTRAIL_DATABASE_URL
    value: {{ include "evictrail.database.url" .database | quote }}
  resources: {{- toYaml .root.Values.resources | nindent 4 }}
  securityContext: {{- include "evictrail.containerSecurity" .root | nindent 4 }}
  {{- if $sources }}
  volumeMounts:
  - {name: database, mountPath: /etc/evictrail/database, readOnly: true}
volumes:
- name: database
  projected:
    defaultMode: 0440
    sources: {{- trim $sources | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "evictrail.tls.secret" -}}
{{- default (printf "%s-tls" (include "evictrail.fullname" .)) .Values.tls.secret }}
{{- end }}

{{- define "evictrail.serverName" -}}
{{- printf "%s.%s.svc" (include "evictrail.fullname" .) .Release.Namespace }}
{{- end }}

{{- /* The names of the certificate: the Service's from anywhere, and those of port-forward. */ -}}
{{- define "evictrail.tls.names" -}}
{{- $server := include "evictrail.serverName" . }}
{{- concat (list $server (printf "%s.cluster.local" $server) (include "evictrail.fullname" .) (printf "%s.%s" (include "evictrail.fullname" .) .Release.Namespace) "localhost") .Values.tls.names | toJson }}
{{- end }}

{{- /* The generated certificate as the data of its secret. What is in the cluster stays; else one is made, once for all that ask in one rendering. */ -}}
{{- define "evictrail.tls.generated" -}}
{{- if not (hasKey .Values.tls "made") }}
{{- $secret := lookup "v1" "Secret" .Release.Namespace (include "evictrail.tls.secret" .) }}
{{- if and $secret (hasKey (default dict $secret.data) "ca.crt") }}
{{- $_ := set .Values.tls "made" (pick $secret.data "ca.crt" "tls.crt" "tls.key") }}
{{- else }}
{{- $ca := genCA (printf "%s-ca" (include "evictrail.fullname" .)) (int .Values.tls.days) }}
{{- $cert := genSignedCert (include "evictrail.fullname" .) (list "127.0.0.1") (include "evictrail.tls.names" . | fromJsonArray) (int .Values.tls.days) $ca }}
{{- $_ := set .Values.tls "made" (dict "ca.crt" (b64enc $ca.Cert) "tls.crt" (b64enc $cert.Cert) "tls.key" (b64enc $cert.Key)) }}
{{- end }}
{{- end }}
{{- toYaml .Values.tls.made }}
{{- end }}

{{- /* The CA of our certificate, base64 of PEM, where the chart knows it. */ -}}
{{- define "evictrail.tls.caBundle" -}}
{{- if eq .Values.tls.source "generated" }}{{ get (include "evictrail.tls.generated" . | fromYaml) "ca.crt" }}
{{- else if eq .Values.tls.source "secret" }}{{ .Values.tls.ca | b64enc }}
{{- end }}
{{- end }}

{{- define "evictrail.admission.secretName" -}}
{{- default (printf "%s-admission" (include "evictrail.fullname" .)) .Values.observer.secret.name }}
{{- end }}

{{- /* Whether API servers are known by the observer's path: by a secret of yours or, without a CA of client certificates, one that the chart makes. */ -}}
{{- define "evictrail.admission.byPath" -}}
{{- if or .Values.observer.secret.name (not .Values.observer.clientCASecret.name) }}true{{ end }}
{{- end }}

{{- /* The secret of the observer's path. What is in the cluster stays; else one is made, once for all that ask in one rendering. Where yours cannot be read,
as when nothing asks the cluster, the path says what belongs there. */ -}}
{{- define "evictrail.admission.secret" -}}
{{- if not (hasKey .Values.observer "made") }}
{{- $key := .Values.observer.secret.key }}
{{- $secret := lookup "v1" "Secret" .Release.Namespace (include "evictrail.admission.secretName" .) }}
{{- if and $secret (hasKey (default dict $secret.data) $key) }}
{{- $_ := set .Values.observer "made" (get $secret.data $key | b64dec | trim | splitList "\n" | first | trim) }}
{{- else if .Values.observer.secret.name }}
{{- $_ := set .Values.observer "made" (printf "put-here-the-secret-%s" .Values.observer.secret.name) }}
{{- else }}
{{- $_ := set .Values.observer "made" (randAlphaNum 48 | lower) }}
{{- end }}
{{- end }}
{{- .Values.observer.made }}
{{- end }}

{{- /* One of files/manifests, which are those of "evictrail generate manifests", filled in. They are Go templates as this is. */ -}}
{{- define "evictrail.manifest" -}}
{{- $root := index . 0 }}
{{- $server := include "evictrail.serverName" $root }}
{{- $port := int $root.Values.service.port }}
{{- $path := "/admission" }}
{{- if and (eq (index . 1) "observer") (include "evictrail.admission.byPath" $root) }}
{{- $path = printf "/admission/%s" (include "evictrail.admission.secret" $root) }}
{{- end }}
{{- tpl ($root.Files.Get (printf "files/manifests/%s.yaml" (index . 1))) (dict "Template" $root.Template
  "Namespace" $root.Release.Namespace "Service" (include "evictrail.fullname" $root) "Port" $port
  "ServerName" $server "Base" (printf "https://%s:%d" $server $port) "CABundle" (include "evictrail.tls.caBundle" $root)
  "Observer" "" "ObserverPort" (int $root.Values.service.admissionPort) "ReviewPath" $path
  "PolicyName" (printf "%s-eviction-reason" (include "evictrail.fullname" $root))) }}
{{- end }}

{{- /* The volumes of who may send audit events, and of what is shown to the descheduler; nothing where there is none. */ -}}
{{- define "evictrail.audit.sources" -}}
{{- if .Values.audit.enabled }}
{{- with .Values.audit.tokenSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: tokens}]}
{{- end }}{{ end }}
{{- with .Values.audit.clientCASecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}{{ end }}
{{- end }}
{{- end }}

{{- define "evictrail.admission.sources" -}}
{{- if .Values.observer.enabled }}
{{- if include "evictrail.admission.byPath" . }}
- secret: {name: {{ include "evictrail.admission.secretName" . }}, items: [{key: {{ .Values.observer.secret.key }}, path: secret}]}
{{- end }}
{{- with .Values.observer.clientCASecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}{{ end }}
{{- end }}
{{- end }}

{{- define "evictrail.descheduler.sources" -}}
{{- if .Values.descheduler.metrics.url }}
{{- with .Values.descheduler.metrics.caSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}{{ end }}
{{- with .Values.descheduler.metrics.tokenSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: token}]}
{{- end }}{{ end }}
{{- end }}
{{- end }}

{{- define "evictrail.prometheus.sources" -}}
{{- if .Values.prometheus.url }}
{{- with .Values.prometheus.caSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}{{ end }}
{{- with .Values.prometheus.tokenSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: token}]}
{{- end }}{{ end }}
{{- end }}
{{- end }}

{{- /* The volume of what a receiver is reached with: cloudEvents or traces of .Values.notify. */ -}}
{{- define "evictrail.receiver.sources" -}}
{{- if .url }}
{{- with .caSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end }}{{ end }}
{{- with .tokenSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: token}]}
{{- end }}{{ end }}
{{- end }}
{{- end }}

{{- /* The ports of the database, and of the schema's owner's: what is behind the colons of the hosts, else 5432. */ -}}
{{- define "evictrail.database.ports" -}}
{{- $ports := list }}
{{- range list .Values.database.url .Values.database.readURL .Values.schema.database.url }}
{{- range regexReplaceAll "^[a-z]+://([^@]*@)?([^/?]*).*$" . "${2}" | splitList "," }}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" .) }}
{{- if . }}{{ $ports = append $ports (default "5432" $port | int) }}{{ end }}
{{- end }}
{{- end }}
{{- $ports | uniq | toJson }}
{{- end }}
