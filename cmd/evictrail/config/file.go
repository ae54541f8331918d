package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// APIVersion is that of the files that Decode reads. Kind is what they configure.
const (
	APIVersion = "evictrail.dev/v1alpha1"
	Kind       = "RunConfiguration"
)

// maxFile is the most that a file may have, in bytes.
const maxFile = 1 << 20

// File is a configuration file.
type File struct {
	Name     string
	Settings []Setting // in the order of the file
}

// Setting is what a file has for one flag.
type Setting struct {
	Flag   string
	Values []string // one, or several of a flag that may be repeated
	List   bool     // whether it is written as a list or a map
	Line   int      // from 1
}

// Decode reads a configuration file. What it does not understand is an error that names the file and the line; flags that do not exist
// are refused by Complete.
func Decode(name string, r io.Reader) (*File, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: more than %d bytes: this is no configuration file", name, maxFile)
	}
	root, err := decodeDocument(name, text)
	if err != nil {
		return nil, err
	}
	f := &File{Name: name}
	header := map[string]string{"apiVersion": "", "kind": ""}
	seen := map[string]int{}
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if before, is := seen[key.Value]; is {
			return nil, f.errorf(key.Line, "%s stands in line %d already", key.Value, before)
		}
		seen[key.Value] = key.Line
		s, err := f.decodeSetting(key, value)
		if err != nil {
			return nil, err
		}
		if _, is := header[key.Value]; is {
			header[key.Value] = strings.Join(s.Values, " ")
			continue
		}
		f.Settings = append(f.Settings, s)
	}
	if header["apiVersion"] != APIVersion || header["kind"] != Kind {
		return nil, fmt.Errorf("%s: apiVersion %q and kind %q: it begins with the lines \"apiVersion: %s\" and \"kind: %s\"",
			name, header["apiVersion"], header["kind"], APIVersion, Kind)
	}
	return f, nil
}

// decodeDocument returns the map that is the one document of a file.
func decodeDocument(name string, text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var document, next yaml.Node
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one document", name)
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: expected settings, one a line, such as \"cluster: prod\"", name)
	}
	return document.Content[0], nil
}

// decodeSetting reads one setting.
func (f *File) decodeSetting(key, value *yaml.Node) (Setting, error) {
	s := Setting{Flag: key.Value, Line: key.Line, List: value.Kind != yaml.ScalarNode}
	if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
		return s, f.errorf(key.Line, "expected the name of a setting")
	}
	values := value.Content
	switch value.Kind {
	case yaml.ScalarNode:
		values = []*yaml.Node{value}
	case yaml.SequenceNode, yaml.MappingNode:
	default:
		return s, f.errorf(value.Line, "%s: anchors and aliases are not supported: repeat the value", s.Flag)
	}
	if at := slices.IndexFunc(values, func(v *yaml.Node) bool { return v.Kind != yaml.ScalarNode || v.Tag == "!!null" }); at >= 0 {
		return s, f.errorf(values[at].Line, "%s: expected a value, a list of values or a map of names to values", s.Flag)
	}
	step := 1
	if value.Kind == yaml.MappingNode {
		step = 2
	}
	for i := 0; i < len(values); i += step {
		text := values[i].Value
		if step == 2 {
			text += "=" + values[i+1].Value
		}
		s.Values = append(s.Values, text)
	}
	return s, nil
}

// errorf returns an error about a line of the file.
func (f *File) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", f.Name, line, fmt.Errorf(format, args...))
}
