package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/evictrail/evictrail/cmd/evictrail/mask"
)

// Write returns flags as a file that Decode reads, each with where its value is from. Passwords in URLs are hidden. Settings that have their
// defaults are left out, or, with all, written as comments below what they mean.
func Write(flags *pflag.FlagSet, all bool) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "apiVersion: %s\nkind: %s\n", APIVersion, Kind)
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		origin := OriginOf(f)
		if !isSetting(f) || err != nil || origin.Source == Default && !all {
			return
		}
		var line string
		if line, err = writeSetting(f); err != nil {
			return
		}
		if all {
			_, usage := pflag.UnquoteUsage(f)
			fmt.Fprintf(&out, "\n# %s\n", usage)
		}
		if origin.Source == Default {
			fmt.Fprintf(&out, "# %s\n", line)
			return
		}
		fmt.Fprintf(&out, "%s # %s\n", line, strings.TrimSpace(string(origin.Source)+" "+origin.Place))
	})
	return out.String(), err
}

// writeSetting returns the line of a flag in a file.
func writeSetting(f *pflag.Flag) (string, error) {
	var value any = mask.Text(f.Value.String())
	if list, is := f.Value.(pflag.SliceValue); is {
		values := slices.Clone(list.GetSlice())
		for i := range values {
			values[i] = mask.Text(values[i])
		}
		value = values
	}
	node := &yaml.Node{}
	if err := node.Encode(value); err != nil {
		return "", err
	}
	node.Style = yaml.FlowStyle
	if node.Kind == yaml.ScalarNode && slices.Contains([]string{"bool", "int", "float64"}, f.Value.Type()) {
		node.Style, node.Tag = 0, ""
	}
	text, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: f.Name}, node}})
	return strings.TrimSpace(string(text)), err
}
