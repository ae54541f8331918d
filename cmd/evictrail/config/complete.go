package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Source is a place that a value can come from.
type Source string

// The sources, the strongest first.
const (
	CommandLine Source = "command line"
	Environment Source = "environment"
	InFile      Source = "file"
	Default     Source = "default"
)

// Origin says where the value of a flag is from.
type Origin struct {
	Source Source
	Place  string // the variable, or the line of the file; empty for the others
}

// onlyThere is an annotation of flags that the command line alone sets.
const onlyThere = "evictrail/command-line-only"

// LeaveToCommandLine keeps the environment and files from setting a flag.
func LeaveToCommandLine(flags *pflag.FlagSet, flag string) {
	_ = flags.SetAnnotation(flag, onlyThere, []string{"true"})
}

// Variable returns the variable of the environment that sets a flag: EVICTRAIL_KEEP_FACTS of keep-facts. Empty: there is none.
func Variable(flag *pflag.Flag) string {
	if flag.Name == "help" || flag.Name == "version" || flag.Annotations[onlyThere] != nil || flag.Hidden {
		return ""
	}
	return "EVICTRAIL_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
}

// originKey is the annotation that a flag has its origin in.
const originKey = "evictrail/origin"

// OriginOf returns where the value of a flag is from. Flags that Complete has not seen have their defaults.
func OriginOf(f *pflag.Flag) Origin {
	if a := f.Annotations[originKey]; a != nil {
		return Origin{Source(a[0]), a[1]}
	}
	return Origin{Source: Default}
}

// setOrigin notes where the value of a flag is from.
func setOrigin(f *pflag.Flag, source Source, place string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[originKey] = []string{string(source), place}
}

// Complete sets each flag that the command line left out from the environment, or else from a file, and notes where each value is from
// (OriginOf). Empty variables are as if they were not there. A variable of a flag that may be repeated has one value a line. Flags set from
// the environment do not count as changed (pflag.Flag.Changed): variables are shared by all commands.
func Complete(flags *pflag.FlagSet, getenv func(string) string, readFile func() (*File, error)) error {
	if err := completeFromEnvironment(flags, getenv); err != nil {
		return err
	}
	file, err := readFile()
	if err != nil || file == nil {
		return err
	}
	return file.completeFlags(flags)
}

func completeFromEnvironment(flags *pflag.FlagSet, getenv func(string) string) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		variable := Variable(f)
		if f.Changed {
			setOrigin(f, CommandLine, "")
			return
		}
		if variable == "" || getenv(variable) == "" {
			return
		}
		setOrigin(f, Environment, variable)
		if e := setFlag(f, splitVariable(f, getenv(variable))); e != nil && err == nil {
			err = fmt.Errorf("%s %q: %w", variable, getenv(variable), e)
		}
	})
	return err
}

// completeFlags sets what neither the command line nor the environment has.
func (f *File) completeFlags(flags *pflag.FlagSet) error {
	for _, s := range f.Settings {
		flag := flags.Lookup(s.Flag)
		if flag == nil || !isSetting(flag) {
			return f.errorf(s.Line, "%s: there is no such setting%s", s.Flag, suggestSettings(flags, s.Flag))
		}
		if _, repeated := flag.Value.(pflag.SliceValue); s.List && !repeated {
			return f.errorf(s.Line, "%s: expected one value", s.Flag)
		}
		if OriginOf(flag).Source != Default {
			continue
		}
		if err := setFlag(flag, s.Values); err != nil {
			return f.errorf(s.Line, "%s %q: %w", s.Flag, strings.Join(s.Values, " "), err)
		}
		flag.Changed = true
		setOrigin(flag, InFile, fmt.Sprintf("%s:%d", f.Name, s.Line))
	}
	return nil
}

// FileFlag is the flag that names the configuration file.
const FileFlag = "config"

// isSetting reports whether a file may have a flag.
func isSetting(f *pflag.Flag) bool { return f.Name != FileFlag && Variable(f) != "" }

// setFlag replaces the value of a flag.
func setFlag(f *pflag.Flag, values []string) error {
	if list, is := f.Value.(pflag.SliceValue); is {
		return list.Replace(values)
	}
	if len(values) != 1 {
		return errors.New("expected one value")
	}
	err := f.Value.Set(values[0])
	if err != nil && f.Value.Type() == "bool" {
		return errors.New("expected true or false")
	}
	return err
}

// CopyCommandLine sets the flags that the command line has in other flags of the same command.
func CopyCommandLine(from, to *pflag.FlagSet) (err error) {
	from.VisitAll(func(f *pflag.Flag) {
		flag := to.Lookup(f.Name)
		if OriginOf(f).Source != CommandLine || flag == nil || err != nil {
			return
		}
		values := []string{f.Value.String()}
		if list, is := f.Value.(pflag.SliceValue); is {
			values = list.GetSlice()
		}
		if err = setFlag(flag, values); err == nil {
			flag.Changed = true
		}
	})
	return err
}

// splitVariable returns the values that a variable has for a flag.
func splitVariable(f *pflag.Flag, text string) []string {
	if _, is := f.Value.(pflag.SliceValue); !is {
		return []string{text}
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// suggestSettings returns what may have been meant by a setting that does not exist.
func suggestSettings(flags *pflag.FlagSet, name string) string {
	names := &cobra.Command{Use: "settings"}
	flags.VisitAll(func(f *pflag.Flag) {
		if isSetting(f) {
			names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	names.SuggestionsMinimumDistance = 2
	if found := names.SuggestionsFor(name); len(found) > 0 {
		return "; did you mean " + strings.Join(found, " or ") + "?"
	}
	return "; `evictrail config print --all` lists all"
}
