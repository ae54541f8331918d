package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
)

const (
	unknown   = "NOASSERTION"
	mainID    = "Package-evictrail"
	license   = "Apache-2.0"
	homepage  = "https://github.com/evictrail/evictrail"
	module    = "github.com/evictrail/evictrail"
	goPackage = "stdlib" // the name of Go's own packages in package URLs
)

// writeSBOM writes what the program of a platform is made of, as the program itself says.
func (r *release) writeSBOM(p platform) error {
	name := r.baseName(p) + ".spdx.json"
	program := filepath.Join(r.stage(p), "evictrail")
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	sum, err := sumFile(program)
	if err != nil {
		return err
	}
	doc := r.describeProgram(r.baseName(p), r.url(name), sum, info)
	if err := spdxlib.ValidateDocument(doc); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var out bytes.Buffer
	if err := json.Write(doc, &out, json.Indent("  "), json.EscapeHTML(false)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return writePublic(filepath.Join(r.out, name), out.String())
}

// describeProgram returns the document: the program, Go's own packages and each module, on which the program depends.
func (r *release) describeProgram(name, url, sum string, info *debug.BuildInfo) *spdx.Document {
	program := &spdx.Package{
		PackageName:               "evictrail",
		PackageSPDXIdentifier:     mainID,
		PackageVersion:            r.version,
		PackageFileName:           "evictrail",
		PrimaryPackagePurpose:     "APPLICATION",
		PackageDownloadLocation:   "git+" + homepage + "@" + r.commit,
		PackageHomePage:           homepage,
		PackageChecksums:          []common.Checksum{{Algorithm: common.SHA256, Value: sum}},
		PackageLicenseConcluded:   license,
		PackageLicenseDeclared:    license,
		PackageCopyrightText:      unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{packageURL(module, "v"+r.version)},
	}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: url + "#" + sum,
		CreationInfo: &spdx.CreationInfo{
			Created: r.time.Format(time.RFC3339),
			Creators: []common.Creator{
				{CreatorType: "Tool", Creator: "evictrail-release"},
				{CreatorType: "Organization", Creator: "evictrail"},
			},
		},
		Packages:      []*spdx.Package{program},
		Relationships: []*spdx.Relationship{relateElements("DOCUMENT", common.TypeRelationshipDescribe, mainID)},
	}
	parts := []*spdx.Package{describeModule(goPackage, strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		parts = append(parts, describeModule(dep.Path, dep.Version, dep.Sum))
	}
	for _, part := range parts {
		doc.Packages = append(doc.Packages, part)
		relation := relateElements(mainID, common.TypeRelationshipDependsOn, part.PackageSPDXIdentifier)
		doc.Relationships = append(doc.Relationships, relation)
	}
	return doc
}

// describeModule returns a module as a package. Its licenses are for those to say who read it. The sum is that of
// go.sum, of a kind that SPDX has no name for.
func describeModule(path, version, sum string) *spdx.Package {
	p := &spdx.Package{
		PackageName: path, PackageSPDXIdentifier: common.ElementID("Package-" + sanitizeID(path)), PackageVersion: version,
		PrimaryPackagePurpose: "LIBRARY", PackageDownloadLocation: unknown,
		PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{packageURL(path, version)},
	}
	if sum != "" {
		p.PackageSourceInfo = "go.sum: " + sum
	}
	return p
}

// packageURL returns the package URL of a module, by which scanners look for known vulnerabilities.
//
// Source: package-url/purl-spec, types/golang: names are in lower case, and a plus is encoded.
func packageURL(path, version string) *spdx.PackageExternalReference {
	locator := "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
	return &spdx.PackageExternalReference{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: locator,
	}
}

func relateElements(from common.ElementID, how string, to common.ElementID) *spdx.Relationship {
	a, b := common.MakeDocElementID("", string(from)), common.MakeDocElementID("", string(to))
	return &spdx.Relationship{RefA: a, RefB: b, Relationship: how}
}

// sanitizeID returns a name as an identifier of SPDX may be: letters, digits, dots and dashes. A slash is a dash,
// anything else its number.
func sanitizeID(name string) string {
	var out strings.Builder
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-':
			out.WriteRune(c)
		case c == '/':
			out.WriteByte('-')
		default:
			_, _ = fmt.Fprintf(&out, "-%d-", c)
		}
	}
	return out.String()
}
