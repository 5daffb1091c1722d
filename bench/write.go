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
	fmt.Fprintf(&text, "# Results\n\n%s In %v.\n\n%s", b.conditions(), took.Round(time.Second), listPeers(b.peers))
	for _, c := range b.charts() {
		fmt.Fprintf(&text, "\n## %s\n\n%s\n![%s](%s.svg)\n", c.title(), c.markdown(), c.title(), c.name())
		if err := writePlot(b.out, c); err != nil {
			return err
		}
	}
	if b.costs != nil {
		fmt.Fprintf(&text, "\n## What each operation costs\n\n%s", costTable(b.costs))
	}
	fmt.Print(text.String())
	if b.docs != "" {
		if err := b.writeDocs(rawName); err != nil {
			return err
		}
	}
	samples, err := json.MarshalIndent(b.samples, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(b.out, "results.md"), []byte(text.String()), 0o644),
		os.WriteFile(filepath.Join(b.out, "samples.json"), samples, 0o644),
	)
}

// A chart is a table of the results, with a plot.
type chart interface {
	name() string
	title() string
	markdown() string
	draw() *plot
}

func writePlot(dir string, c chart) error {
	svg, err := c.draw().svg()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, c.name()+".svg"), svg, 0o644)
}

// charts returns the charts of the results, in the order of the workloads.
func (b *bench) charts() []chart {
	var names []string
	for _, p := range b.peers {
		names = append(names, p.Name())
	}
	var charts []chart
	for _, w := range b.chosenWorkloads() {
		for _, link := range b.settings.links {
			if t := tabulate(b.samples, w, link, names); len(t.rows) > 0 {
				charts = append(charts, t)
			}
		}
	}
	for _, g := range b.chosenGrowths() {
		charts = append(charts, newGrowthChart(g, b.samples))
	}
	return charts
}

// conditions says on what, and how often, this run has measured.
func (b *bench) conditions() string {
	return fmt.Sprintf("%s, %s, %s/%s, %d CPUs; %d repetitions of %v.", b.version,
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), b.repetitions, b.time)
}

// listPeers says what the peers are.
func listPeers(peers []Peer) string {
	var text strings.Builder
	for _, p := range peers {
		fmt.Fprintf(&text, "- %s: %s\n", p.Name(), p.About())
	}
	return text.String()
}
