package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
)

// section matches a section of a page: the text between two comments. The first comment has its
// name.
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

// rawName is the page of all tables, in the directory of this module.
const rawName = "results.md"

// peersName is the name of the section of rawName that says what the peers are.
const peersName = "peers"

// writeDocs puts the tables into the page raw, and then the charts and the summary of these tables
// into the page next to the directory of the plots. Sections about which this run says nothing stay
// as they are.
func (b *bench) writeDocs(raw string) error {
	texts := map[string]string{peersName: listPeers(peers())}
	for _, c := range b.charts() {
		texts[c.name()] = c.markdown() + "\n" + b.conditions() + "\n"
	}
	if b.costs != nil {
		texts[costsName] = costTable(b.costs)
	}
	results, err := fillFile(raw, texts)
	if err != nil {
		return err
	}
	return b.writeDecisive(results)
}

// writeDecisive fills the page next to the directory of the plots.
func (b *bench) writeDecisive(results string) error {
	name := filepath.Clean(b.docs) + ".md"
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.docs, 0o755); err != nil {
		return err
	}
	texts := map[string]string{summaryName: summarize(results)}
	for _, c := range b.charts() {
		if _, shown := sectionOf(string(page), c.name()); !shown {
			continue
		}
		texts[c.name()] = "![" + c.title() + "](" + filepath.Base(b.docs) + "/" + c.name() + ".svg)\n"
		err = errors.Join(err, writePlot(b.docs, c))
	}
	_, filled := fillFile(name, texts)
	return errors.Join(err, filled)
}

// fillFile puts texts into the sections of a file, and returns the new content.
func fillFile(name string, texts map[string]string) (string, error) {
	page, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	filled := fillPage(string(page), texts)
	return filled, os.WriteFile(name, []byte(filled), 0o644)
}
