package latchkey_test

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	codeBlock  = regexp.MustCompile("(?ms)^ *```.*?^ *```$|`[^`\n]*`")
	pageLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageTitle  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	titleNoise = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	pageNamed  = regexp.MustCompile(`\bdocs/[\w/-]+\.md\b`)
)

// Every link in a page leads to a file of the repository and, if it names a heading, to a heading
// of that page.
func TestLinks(t *testing.T) {
	t.Parallel()
	anchors := map[string]map[string]bool{}
	for _, page := range pages(t) {
		anchors[page] = anchorsOf(read(t, page))
	}
	for page := range anchors {
		text := codeBlock.ReplaceAllString(read(t, page), "")
		for _, link := range pageLink.FindAllStringSubmatch(text, -1) {
			path, anchor, named := strings.Cut(link[1], "#")
			if strings.Contains(path, ":") {
				continue
			}
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			_, err := os.Stat(target)
			assert.NoError(t, err, "%s links to %s", page, link[1])
			if named && err == nil {
				assert.True(t, anchors[target][anchor], "%s links to %s: no such heading", page, link[1])
			}
		}
	}
}

// Links to other sites lead somewhere. That needs the network and changes by itself, so only a
// weekly workflow sets LATCHKEY_TEST_LINKS.
func TestExternalLinks(t *testing.T) {
	t.Parallel()
	if os.Getenv("LATCHKEY_TEST_LINKS") == "" {
		return
	}
	linkedBy := map[string]string{}
	for _, page := range pages(t) {
		text := codeBlock.ReplaceAllString(read(t, page), "")
		for _, link := range pageLink.FindAllStringSubmatch(text, -1) {
			if url, _, _ := strings.Cut(link[1], "#"); strings.HasPrefix(url, "http") {
				linkedBy[url] = page
			}
		}
	}
	for url, page := range linkedBy {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			assert.NoError(t, reached(t.Context(), url), "%s links to it", page)
		})
	}
}

// reached requests a page, up to three times. A site that refuses programs has the page, as far as
// this test knows.
func reached(ctx context.Context, url string) error {
	var err error
	for range 3 {
		var status int
		status, err = get(ctx, url)
		switch {
		case err != nil:
		case status == http.StatusNotFound, status == http.StatusGone:
			return fmt.Errorf("%s: status %d", url, status)
		case status >= http.StatusInternalServerError:
			err = fmt.Errorf("%s: status %d", url, status)
		default:
			return nil
		}
	}
	return err
}

func get(ctx context.Context, url string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return reply.StatusCode, reply.Body.Close()
}

// Pages that code, messages and scripts name exist.
func TestPagesThatCodeNames(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, ".go", ".lua", ".sh", ".yaml") {
		for line := range strings.Lines(read(t, file)) {
			if !strings.Contains(line, "docs/") { // much quicker than the expression
				continue
			}
			for _, page := range pageNamed.FindAllString(line, -1) {
				assert.FileExists(t, page, "%s names it", file)
			}
		}
	}
}

// The index of docs/ links to every page.
func TestIndexHasEveryPage(t *testing.T) {
	t.Parallel()
	index := read(t, "docs/README.md")
	for _, page := range pages(t) {
		if name, ok := strings.CutPrefix(page, "docs/"); ok && name != "README.md" {
			assert.Contains(t, index, "]("+name+")", "docs/README.md has no link to %s", page)
		}
	}
}

func pages(t *testing.T) []string { t.Helper(); return files(t, ".md") }

// files returns the files of the repository with one of the endings, except hidden folders and
// results.
func files(t *testing.T, endings ...string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "results" || name == "node_modules"):
			return filepath.SkipDir
		}
		for _, ending := range endings {
			if strings.HasSuffix(name, ending) {
				found = append(found, path)
			}
		}
		return nil
	}))
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// anchorsOf returns the anchors that GitHub generates from the headings of a page.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, title := range pageTitle.FindAllStringSubmatch(codeFences.ReplaceAllString(text, ""), -1) {
		plain := linkText.ReplaceAllString(title[1], "$1")
		anchor := strings.ReplaceAll(titleNoise.ReplaceAllString(strings.ToLower(plain), ""), " ", "-")
		for n := 1; anchors[anchor]; n++ {
			anchor = fmt.Sprintf("%s-%d", strings.TrimSuffix(anchor, fmt.Sprintf("-%d", n-1)), n)
		}
		anchors[anchor] = true
	}
	return anchors
}

var codeFences = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
