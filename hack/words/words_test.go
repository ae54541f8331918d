package words

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// oneWord are the unexported functions whose name may be one word: Go gives them their names.
var oneWord = map[string]bool{"main": true, "init": true}

// mostOneWord is the share of functions and methods whose name may be one lower-case word, in percent.
const mostOneWord = 12

// houseWords are words that nobody outside of this project uses so, with what is written instead. Neither comments nor texts have any of them.
var houseWords = []struct {
	is      *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\b(tells?|told|telling)\b`), "reports, records, shows, says; notified, asked (of people)"},
	{regexp.MustCompile(`(?i)\b(gives|gave|given back)\b`), "returns, has, writes, grants"},
	{regexp.MustCompile(`(?i)\b(anew|afresh)\b`), "again, rebuilt, rederived"},
	{regexp.MustCompile(`(?i)\bsays whether\b`), "reports whether"},
	{regexp.MustCompile(`(?i)\bmeanwhile\b`), "during that time"},
	{regexp.MustCompile(`(?i)\blastly\b`), "most recently"},
	{regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`), "fix"},
	{regexp.MustCompile(`(?i)\bwhoever\b`), "the user, the caller, no matter who, anyone who"},
	{regexp.MustCompile(`(?i)\bnobody saw\b`), "unknown, not seen"},
	{regexp.MustCompile(`(?i)\blacks\b`), "has no"},
}

// sources are the parsed Go files of the repository, generated ones aside, with the positions in them.
type sources struct {
	positions *token.FileSet
	files     []*ast.File
}

// parseSources is run once for all tests.
var parseSources = sync.OnceValues(func() (sources, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return sources{}, err
	}
	of := sources{positions: token.NewFileSet()}
	return of, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isLeftOut(d.Name()):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		f, err := parser.ParseFile(of.positions, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil && !ast.IsGenerated(f) {
			of.files = append(of.files, f)
		}
		return err
	})
})

// isLeftOut reports whether a directory holds no text of ours: what was built, what was recorded, and this package, which has to name the words.
func isLeftOut(name string) bool {
	return strings.HasPrefix(name, ".") || name == "bin" || name == "testdata" || name == "node_modules" || name == "words"
}

// goFiles returns the parsed Go files of the repository, and the positions in them.
func goFiles(t *testing.T) (*token.FileSet, []*ast.File) {
	t.Helper()
	of, err := parseSources()
	require.NoError(t, err)
	require.NotEmpty(t, of.files)
	return of.positions, of.files
}

// isOneWord reports whether a name is one lower-case word.
func isOneWord(name string) bool { return name == strings.ToLower(name) }

// TestFunctionsAreNamedByVerbAndNoun lets methods of small types alone have names of one word, where the type says the rest.
func TestFunctionsAreNamedByVerbAndNoun(t *testing.T) {
	t.Parallel()
	positions, files := goFiles(t)
	all, short := 0, 0
	for _, f := range files {
		for _, d := range f.Decls {
			fn, is := d.(*ast.FuncDecl)
			if !is {
				continue
			}
			all++
			if !isOneWord(fn.Name.Name) || oneWord[fn.Name.Name] {
				continue
			}
			short++
			if fn.Recv == nil {
				t.Errorf("%s: func %s: name it by a verb and a noun", positions.Position(fn.Pos()), fn.Name.Name)
			}
		}
	}
	t.Logf("%d of %d functions and methods have a name of one word", short, all)
	require.LessOrEqual(t, 100*short, mostOneWord*all)
}

// TestCommentsHaveNoHouseWords finds words in comments that a stranger would have to learn.
func TestCommentsHaveNoHouseWords(t *testing.T) {
	t.Parallel()
	positions, files := goFiles(t)
	for _, f := range files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				for _, problem := range findHouseWords(c.Text) {
					t.Errorf("%s: %s", positions.Position(c.Pos()), problem)
				}
			}
		}
	}
}

// TestTextsHaveNoHouseWords finds them in documents, SQL, scripts, manifests and pages. The history in the CHANGELOG may keep its words.
func TestTextsHaveNoHouseWords(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	kinds, read := map[string]bool{".md": true, ".sql": true, ".sh": true, ".js": true, ".css": true, ".html": true, ".yaml": true, ".yml": true, ".tpl": true, "": true}, 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isLeftOut(d.Name()) && path != root:
			return fs.SkipDir
		case d.IsDir() || !kinds[filepath.Ext(path)] || d.Name() == "CHANGELOG.md" || d.Name() == "LICENSE" || !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if bytes.IndexByte(text, 0) >= 0 {
			return err // a program that was built here
		}
		read++
		for n, line := range strings.Split(string(text), "\n") {
			for _, problem := range findHouseWords(line) {
				t.Errorf("%s:%d: %s", path, n+1, problem)
			}
		}
		return err
	}))
	require.Greater(t, read, 200)
}

// findHouseWords returns what is wrong with the words of a comment.
func findHouseWords(comment string) []string {
	var problems []string
	if strings.HasPrefix(comment, "//nolint") || strings.HasPrefix(comment, "//go:") {
		return nil
	}
	comment = strings.NewReplacer("gives up", "", "gave up", "").Replace(comment)
	for _, w := range houseWords {
		if found := w.is.FindString(comment); found != "" {
			problems = append(problems, fmt.Sprintf("%q: write %s", found, w.instead))
		}
	}
	return problems
}

func TestHouseWordsAreFound(t *testing.T) {
	t.Parallel()
	require.Len(t, findHouseWords("// isOpen tells whether it gives them, anew"), 3)
	require.Empty(t, findHouseWords("// isOpen reports whether it gives up"))
	require.True(t, isOneWord("take"))
	require.False(t, isOneWord("takeOne"))
}
