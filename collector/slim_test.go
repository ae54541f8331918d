package collector

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
)

// TestUnreadableObjectsAreNamed reads objects that cannot be read: the error names them, wherever what is wrong stands.
func TestUnreadableObjectsAreNamed(t *testing.T) {
	t.Parallel()
	const metadata = `"metadata":{"name":"db","namespace":"shop","uid":"u1","resourceVersion":"7"`
	tests := []struct{ name, object, problem string }{
		{"a bad field after the metadata", `{` + metadata + `},"spec":{"evictionStrategy":1}}`, "evictionStrategy"},
		{"a bad field before the metadata", `{"spec":{"evictionStrategy":1},` + metadata + `}}`, "evictionStrategy"},
		{"too many annotations", `{` + metadata + `,"annotations":{"a":"` + strings.Repeat("x", maxAnnotations) + `"}}}`, "annotations of 262152 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := decodeObject([]byte(tt.object), &slimVMI{})
			require.ErrorContains(t, o.err, "read shop/db: ")
			require.ErrorContains(t, o.err, tt.problem)
			require.Equal(t, "u1", o.UID)
		})
	}
	o := decodeObject([]byte(`{`+metadata+`},"Spec":{"evictionStrategy":"None"},"status":{"phase":"Running","phase":"`+"\xff"+`"}}`), &slimVMI{})
	require.NoError(t, o.err, "what encoding/json takes is taken")
}

// TestCutStream ends a watch within a notification: client-go gets the end as it knows it, after what came before.
func TestCutStream(t *testing.T) {
	t.Parallel()
	stream := `{"type":"MODIFIED","object":{"metadata":{"name":"db","uid":"u1","resourceVersion":"7"}}}` + "\n"
	for cut := range len(stream) {
		d := newWatchDecoder(io.NopCloser(strings.NewReader(stream+stream[:cut])), ofVMIs{}, nil)
		kind, o, err := d.Decode()
		require.NoError(t, err)
		require.Equal(t, watch.Modified, kind)
		require.Equal(t, "u1", o.(*object).UID)
		_, _, err = d.Decode()
		if cut == 0 {
			require.Equal(t, io.EOF, err)
		} else if cut < len(stream)-1 {
			require.Equal(t, io.ErrUnexpectedEOF, err, cut)
		}
	}
}

// TestNotificationInAnyOrder reads notifications whose members come in another order than the API server's, or not at all.
func TestNotificationInAnyOrder(t *testing.T) {
	t.Parallel()
	d := newWatchDecoder(io.NopCloser(strings.NewReader(`{"object":{"metadata":{"name":"db","uid":"u1","resourceVersion":"7"}},"more":[1],"type":"MODIFIED"}
{"type":"DELETED"}
{"object":{"metadata":{"name":"db","uid":"u1","resourceVersion":"7"}}}`)), ofVMIs{}, nil)
	kind, o, err := d.Decode()
	require.NoError(t, err)
	require.Equal(t, watch.Modified, kind)
	require.Equal(t, "u1", o.(*object).UID)
	require.NoError(t, o.(*object).err)
	_, o, err = d.Decode()
	require.NoError(t, err)
	require.Error(t, o.(*object).err)
	_, _, err = d.Decode()
	require.ErrorContains(t, err, "unknown watch notification")
}

// ofVMIs reads VMIs.
type ofVMIs struct{}

func (ofVMIs) decodeJSON(raw []byte) *object { return decodeObject(raw, &slimVMI{}) }
func (ofVMIs) beginList() *listing           { return nil }

func (ofVMIs) verifyContinuity(context.Context, bool, presence) error { return nil }
func (ofVMIs) noteRequest(context.Context, bool, error)               {}
func (ofVMIs) noteStreamError(error)                                  {}
