//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMutantsApply wants every mutant to change what is there, once, and to name a test that is there: a change of the code that moves the snippet must move
// the mutant, too.
func TestMutantsApply(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	all, err := loadMutants("list")
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)`)
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			_, err := m.mutateFile(root)
			require.NoError(t, err)
			files, err := filepath.Glob(filepath.Join(root, m.pkg, "*_test.go"))
			require.NoError(t, err)
			asked := regexp.MustCompile(m.test)
			found := false
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				for _, test := range declared.FindAllSubmatch(text, -1) {
					found = found || asked.Match(test[1])
				}
			}
			require.True(t, found, "no test of %s is named %s", m.pkg, m.test)
		})
	}
}

// small is a module with a function and tests of it, and mutants of that.
const small = `
-- go.mod --
module small

go 1.26
-- sum.go --
package small

func Sum(a, b int) int { return a + b }
-- sum_test.go --
package small

import "testing"

func TestSum(t *testing.T) {
	if Sum(1, 2) != 3 {
		t.Error("wrong")
	}
}

func TestZero(t *testing.T) { Sum(0, 0) }

func TestBroken(t *testing.T) { t.Error("as always") }
-- hack/mutants/list/broken.txt --
breaks: a test that fails anyhow
package: ./
test: TestBroken
within: 1m
file: sum.go
-- old --
a + b
-- new --
a - b
-- hack/mutants/list/gone.txt --
breaks: what is not there any more
package: ./
test: TestSum
within: 1m
file: sum.go
-- old --
a * b
-- new --
a - b
-- hack/mutants/list/hoards.txt --
breaks: it takes memory and never ends
package: ./
test: TestSum
within: 1m
file: sum.go
-- old --
return a + b
-- new --
for ; ; a++ {
		hoard = append(hoard, make([]byte, 1<<20))
		for i := range hoard[len(hoard)-1] {
			hoard[len(hoard)-1][i] = 1
		}
	}
-- end --
var hoard [][]byte
-- hack/mutants/list/noticed.txt --
breaks: a sum is a difference
package: ./
test: TestSum|TestZero
within: 1m
file: sum.go
-- old --
a + b
-- new --
a - b
-- hack/mutants/list/slow.txt --
breaks: it never ends
package: ./
test: TestSum
within: 2s
file: sum.go
-- old --
return a + b
-- new --
for {
	}
-- hack/mutants/list/survives.txt --
breaks: a sum is a difference
package: ./
test: TestZero
within: 1m
file: sum.go
-- old --
a + b
-- new --
a - b
-- hack/mutants/list/unbuilt.txt --
breaks: the program
package: ./
test: TestSum
within: 1m
file: sum.go
-- old --
a + b
-- new --
c
`

// TestVerdicts runs mutants of a small module: only the one that a sound test notices counts.
func TestVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make check runs it")
	}
	t.Parallel()
	root := t.TempDir()
	file := regexp.MustCompile(`(?m)^-- (\S+\.\S+) --\n`)
	at := file.FindAllStringSubmatchIndex(small, -1)
	for i, match := range at {
		end := len(small)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		path := filepath.Join(root, small[match[2]:match[3]])
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(small[match[1]:end]), 0o600))
	}
	logs := t.TempDir()
	var table, progress bytes.Buffer
	began := time.Now()
	survived, err := runMutants(root, 300<<20, logs, nil, &table, &progress)
	require.NoError(t, err)
	require.Equal(t, 6, survived, table.String())
	for name, verdict := range map[string]string{
		"broken":   `\*\*not noticed\*\*: the test fails without the mutant: .*`,
		"gone":     `\*\*not noticed\*\*: does not apply: what it replaces is in sum.go 0 times instead of once`,
		"hoards":   `\*\*not noticed\*\*: took more than 300 MiB`,
		"noticed":  `TestSum`,
		"slow":     `\*\*not noticed\*\*: ran out of time`,
		"survives": `\*\*not noticed\*\*: survived`,
		"unbuilt":  `\*\*not noticed\*\*: does not build: .*undefined: c`,
	} {
		require.Regexp(t, `(?m)^\| `+name+` \| [^|]+ \| `+verdict+` \| [0-9]+ \|$`, table.String())
	}
	require.Contains(t, table.String(), "1 of 7 noticed")
	require.Equal(t, 7, strings.Count(progress.String(), "\n"))
	require.FileExists(t, filepath.Join(logs, "noticed.log"))
	text, err := os.ReadFile(filepath.Join(root, "sum.go"))
	require.NoError(t, err)
	require.Contains(t, string(text), "return a + b", "the tree stays as it is")
	t.Logf("took %s", time.Since(began))

	_, err = runMutants(root, 1<<30, "", []string{"nobody"}, &table, &progress)
	require.EqualError(t, err, `no mutant named "nobody"`)
}

// TestParseMutant refuses what says too little.
func TestParseMutant(t *testing.T) {
	t.Parallel()
	whole := "breaks: a\npackage: ./b\ntest: TestC\nwithin: 1m\nfile: d.go\n-- old --\ne\nf\n-- new --\ng\n-- end --\nh\n"
	m, err := parseMutant(whole)
	require.NoError(t, err)
	require.Equal(t, mutant{breaks: "a", pkg: "./b", test: "TestC", within: time.Minute, file: "d.go", old: "e\nf", new: "g", end: "h"}, m)
	for _, line := range []string{"breaks: a\n", "package: ./b\n", "test: TestC\n", "within: 1m\n", "file: d.go\n", "-- old --\n"} {
		_, err := parseMutant(strings.Replace(whole, line, "", 1))
		require.Error(t, err, "without %s", line)
	}
	for _, more := range []string{"colour: red\n", "within: soon\n", "words\n"} {
		_, err := parseMutant(more + whole)
		require.Error(t, err, more)
	}
	_, err = parseMutant(strings.Replace(whole, "g\n", "e\nf\n", 1))
	require.Error(t, err, "old and new are the same")
}
