package notify

import (
	"strconv"
	"time"
)

// What is sent of the OpenTelemetry protocol, as JSON: numbers of 64 bits are texts, IDs are hexadecimal.
//
// Source: https://github.com/open-telemetry/opentelemetry-proto/blob/v1.7.0/opentelemetry/proto/trace/v1/trace.proto
type (
	otlpRequest struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpScope struct {
		Name string `json:"name"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		ParentID   string          `json:"parentSpanId,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Status     otlpStatus      `json:"status"`
	}
	otlpStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		Text string `json:"stringValue"`
	}
	otlpAnswer struct {
		PartialSuccess struct {
			RejectedSpans otlpCount `json:"rejectedSpans"`
			ErrorMessage  string    `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
)

// otlpCount is a number of 64 bits, which JSON has as a text or as a number.
type otlpCount int64

// UnmarshalJSON reads either.
func (c *otlpCount) UnmarshalJSON(text []byte) error {
	if unquoted, err := strconv.Unquote(string(text)); err == nil {
		text = []byte(unquoted)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	*c = otlpCount(n)
	return err
}

// Values of the protocol.
const (
	otlpInternal = 1 // SPAN_KIND_INTERNAL
	otlpError    = 2 // STATUS_CODE_ERROR
)

func otlpTime(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// attributes returns attributes of pairs of key and value; empty values are left out.
func listAttributes(pairs ...string) []otlpAttribute {
	var out []otlpAttribute
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, otlpAttribute{pairs[i], otlpValue{pairs[i+1]}})
		}
	}
	return out
}
