package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
)

// section matches a section of a page: the text between two comments. The first comment has its name.
var section = regexp.MustCompile(`(?s)(<!-- bench (\S+) -->\n).*?(<!-- end -->)`)

// fillPage puts texts into the sections of a page. A section without a text stays as it is.
func fillPage(page string, texts map[string]string) string {
	return section.ReplaceAllStringFunc(page, func(old string) string {
		parts := section.FindStringSubmatch(old)
		text, ok := texts[parts[2]]
		if !ok {
			return old
		}
		return parts[1] + text + parts[3]
	})
}

// sectionOf returns the text of a section of a page, and false if there is no such section.
func sectionOf(page, name string) (string, bool) {
	for _, parts := range section.FindAllStringSubmatch(page, -1) {
		if parts[2] == name {
			return parts[0][len(parts[1]) : len(parts[0])-len(parts[3])], true
		}
	}
	return "", false
}

// writeDocs puts the results into the page next to the directory of its plots, and writes the plots
// that the page shows. The conditions are those of the comparison: a run without a comparison keeps
// the old ones.
func (b *bench) writeDocs(conditions string) error {
	name := filepath.Clean(b.docs) + ".md"
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.docs, 0o755); err != nil {
		return err
	}
	texts := map[string]string{}
	if len(b.chosenWorkloads()) > 0 {
		texts["conditions"] = conditions
	}
	if b.costs != nil {
		texts[costsName] = costTable(b.costs)
	}
	for _, c := range b.charts() {
		if _, shown := sectionOf(string(page), c.name()); !shown {
			continue
		}
		file := filepath.Base(b.docs) + "/" + c.name() + ".svg"
		texts[c.name()] = "![" + c.title() + "](" + file + ")\n\n" + c.markdown()
		err = errors.Join(err, writePlot(b.docs, c))
	}
	return errors.Join(err, os.WriteFile(name, []byte(fillPage(string(page), texts)), 0o644))
}
