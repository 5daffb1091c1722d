package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// write puts results.md, the plots and all samples into the directory, and prints results.md.
func (b *bench) write(took time.Duration) error {
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	var text strings.Builder
	text.WriteString(b.head(took))
	for _, t := range b.tables() {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n![%s](%s)\n", t.title(), t.markdown(), t.title(), t.fileName())
		if err := b.writePlot(t); err != nil {
			return err
		}
	}
	fmt.Print(text.String())
	samples, err := json.MarshalIndent(b.samples, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(b.out, "results.md"), []byte(text.String()), 0o644),
		os.WriteFile(filepath.Join(b.out, "samples.json"), samples, 0o644),
	)
}

func (b *bench) writePlot(t table) (err error) {
	file, err := os.Create(filepath.Join(b.out, t.fileName()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return t.plot(file)
}

func (b *bench) tables() []table {
	var names []string
	for _, p := range b.peers {
		names = append(names, p.Name())
	}
	var tables []table
	for _, w := range b.chosenWorkloads() {
		for _, link := range b.settings.links {
			if t := tabulate(b.samples, w, link, names); len(t.rows) > 0 {
				tables = append(tables, t)
			}
		}
	}
	return tables
}

// head says under which conditions the run took place.
func (b *bench) head(took time.Duration) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# Results\n\n%s, %s, %d CPUs; %d repetitions of %v, in %v. ", b.version,
		runtime.Version(), runtime.NumCPU(), b.repetitions, b.time, took.Round(time.Second))
	text.WriteString("Figures are medians; \"x floor\" is the median of the ratios within one repetition.\n\n")
	for _, p := range b.peers {
		fmt.Fprintf(&text, "- %s: %s\n", p.Name(), p.About())
	}
	return text.String()
}
