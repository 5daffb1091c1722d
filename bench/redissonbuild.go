package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed redisson
var redissonSources embed.FS

// redissonVersion returns the version that pom.xml names.
func redissonVersion() string {
	pom, err := redissonSources.ReadFile("redisson/pom.xml")
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(pom), "<artifactId>redisson</artifactId>")
	_, after, _ = strings.Cut(after, "<version>")
	version, _, _ := strings.Cut(after, "</version>")
	return version
}

// buildRedisson returns the directory of the compiled program for Redisson, which it keeps in the
// user's cache. The error says why there is no such program.
func buildRedisson(ctx context.Context) (string, error) {
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", fmt.Errorf("%s is not in PATH", tool)
		}
	}
	home, err := redissonHome()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(home); err == nil {
		return home, nil
	}
	if err := os.MkdirAll(filepath.Dir(home), 0o755); err != nil {
		return "", err
	}
	// The program is built next to home and then moved, so that home is complete or missing.
	work, err := os.MkdirTemp(filepath.Dir(home), "build-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }() // leftovers in a cache do no harm
	if err := compile(ctx, work); err != nil {
		return "", err
	}
	return home, os.Rename(filepath.Join(work, "build"), home)
}

// redissonHome names a directory of the cache after the sources.
func redissonHome() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	err = fs.WalkDir(redissonSources, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := redissonSources.ReadFile(path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
		return err
	})
	return filepath.Join(cache, "latchkey-bench", hex.EncodeToString(sum.Sum(nil))[:16]), err
}

func compile(ctx context.Context, work string) error {
	if err := os.CopyFS(work, redissonSources); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", filepath.Join(work, "redisson", "pom.xml"),
		"-Dbuild="+filepath.Join(work, "build"), "compiler:compile", "dependency:copy-dependencies")
	output, err := command.CombinedOutput()
	if err == nil {
		return nil
	}
	for line := range bytes.Lines(output) {
		if text, ok := strings.CutPrefix(string(line), "[ERROR] "); ok {
			return errors.New("mvn: " + strings.TrimSpace(text))
		}
	}
	return fmt.Errorf("mvn: %w", err)
}
