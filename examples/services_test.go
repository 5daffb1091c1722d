package examples_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A pod serves its probes, answers 409 while another request imports the same data, and finishes
// the import on SIGTERM.
func TestKubernetes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs SIGTERM, which Windows does not have")
	}
	address := free(t)
	program := command(t, filepath.Join(programs, "kubernetes"), "LISTEN="+address)
	program.Env = append(program.Env, "LATCHKEY_REDIS=")
	stderr, err := program.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return status(t, http.MethodGet, address, "/readyz") == http.StatusOK })
	if got := status(t, http.MethodGet, address, "/livez"); got != http.StatusOK {
		t.Errorf("/livez: %d", got)
	}

	answers := make(chan int, 2)
	for range 2 {
		go func() { answers <- status(t, http.MethodPost, address, "/imports/42") }()
	}
	if got := <-answers; got != http.StatusConflict {
		t.Errorf("the second import: %d", got)
	}
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := <-answers; got != http.StatusOK {
		t.Errorf("the first import: %d", got)
	}
	log, err := io.ReadAll(stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil || !strings.HasSuffix(string(log), "all locks are released\n") {
		t.Errorf("it ended with %v, and said\n%s", err, log)
	}
}

func TestTLS(t *testing.T) {
	for _, needed := range []string{"redis-server", "openssl", "sh"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip("needs " + needed)
		}
	}
	folder, address := t.TempDir(), free(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	start(t, exec.CommandContext(context.Background(), "sh", "tls/server.sh", folder, port))
	await(t, func() bool {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	program := command(t, filepath.Join(programs, "tls"), "LATCHKEY_REDIS=")
	program.Args = append(program.Args, "-files", folder, "-addr", address)
	want := `orders:42 was locked over TLS, by the user latchkey
invoices:42 is not permitted: true
a client without a certificate is refused: true
`
	if got := output(t, program); got != want {
		t.Errorf("it printed\n%s\nwant\n%s", got, want)
	}
}

// The user in the file has exactly the permissions on the page.
func TestUserIsThatOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	users, err := os.ReadFile("tls/users.acl")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)ACL SETUSER latchkey (reset .*?)` + "```").FindSubmatch(page)
	line := regexp.MustCompile(`(?m)^user latchkey (.*)$`).FindSubmatch(users)
	if block == nil || line == nil {
		t.Fatal("there is no user on the page, or none in the file")
	}
	want := strings.Fields(strings.NewReplacer("'", "", "\\\n", " ").Replace(string(block[1])))
	if got := strings.Fields(string(line[1])); !slices.Equal(got, want) {
		t.Errorf("the file has\n%s\nand the page\n%s", got, want)
	}
}

// status makes a request and returns the status of the answer, or 0 if there is none.
func status(t *testing.T, method, address, path string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, http.NoBody)
	if err != nil {
		t.Error(err)
		return 0
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// free returns an address on which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
