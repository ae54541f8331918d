package trail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFactsThatCannotBeWritten writes a fact of a year that JSON has no form for, and reads what is none.
func TestFactsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	_, err := WriteFact(Fact{OccurredAt: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.ErrorIs(t, err, ErrRefused)
	_, err = ReadFact("c1", []byte(`{"subject":"nothing"}`))
	require.Error(t, err)
}
