package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spdx/tools-golang/json"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
	"github.com/stretchr/testify/require"
)

// TestSBOM reads what each program is made of and compares it with the program itself.
func TestSBOM(t *testing.T) {
	t.Parallel()
	r := needRelease(t)
	for _, p := range r.platforms {
		dir := t.TempDir()
		unpackArchive(t, r.archive(p), dir)
		info := readBuild(t, filepath.Join(dir, "evictrail"))
		sum, err := sumFile(filepath.Join(dir, "evictrail"))
		require.NoError(t, err)

		var doc spdx.Document
		text := r.read(t, fmt.Sprintf("evictrail_%s_%s_%s.spdx.json", r.version, p.OS, p.Arch))
		require.NoError(t, json.ReadInto(strings.NewReader(text), &doc))
		require.NoError(t, spdxlib.ValidateDocument(&doc))
		described, err := spdxlib.GetDescribedPackageIDs(&doc)
		require.NoError(t, err)
		require.Len(t, described, 1)
		packages := map[string]*spdx.Package{}
		for _, one := range doc.Packages {
			require.NotContains(t, packages, one.PackageName)
			packages[one.PackageName] = one
		}
		require.Equal(t, described[0], packages["evictrail"].PackageSPDXIdentifier)
		require.Equal(t, r.version, packages["evictrail"].PackageVersion)
		require.Equal(t, sum, packages["evictrail"].PackageChecksums[0].Value)
		require.Equal(t, info.GoVersion, "go"+packages["stdlib"].PackageVersion)
		require.Greater(t, len(info.Deps), 30)
		require.Len(t, packages, len(info.Deps)+2, "the program and Go beside its modules")
		for _, dep := range info.Deps {
			one := packages[dep.Path]
			require.NotNil(t, one, dep.Path)
			require.Equal(t, dep.Version, one.PackageVersion, dep.Path)
			require.Equal(t, "go.sum: "+dep.Sum, one.PackageSourceInfo)
			locator := one.PackageExternalReferences[0].Locator
			require.True(t, strings.HasPrefix(locator, "pkg:golang/"+strings.ToLower(dep.Path)+"@v"), dep.Path)
		}
	}
}

func TestPackageURL(t *testing.T) {
	t.Parallel()
	locator := packageURL("github.com/Azure/sdk", "v1.0.0+incompatible").Locator
	require.Equal(t, "pkg:golang/github.com/azure/sdk@v1.0.0%2Bincompatible", locator)
	require.Equal(t, "a.b-c-95-d-126-e", sanitizeID("a.b/c_d~e"))
}
