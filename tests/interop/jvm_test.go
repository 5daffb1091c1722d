package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// jvm is a running driver. Any number of tests may use it at once.
type jvm struct {
	version string
	cmd     *exec.Cmd
	input   io.WriteCloser
	log     string // the file with what Redisson logs
	exited  chan struct{}

	mu      sync.Mutex
	last    int64 // ID of a command
	waiting map[int64]chan answer
	checked int64 // how much of the log was checked
}

// fields are the arguments of a command.
type fields map[string]any

// answer is the answer to a command. A JVM that has died answers with an error.
type answer struct {
	ID      int64           `json:"id"`
	Value   json.RawMessage `json:"value"`
	Error   string          `json:"error"` // class of the exception
	Message string          `json:"message"`
	Began   int64           `json:"began"` // nanoseconds of the machine's clock
	Ended   int64           `json:"ended"`
}

const died = "the JVM has died"

func (a answer) began() time.Time { return time.Unix(0, a.Began) }
func (a answer) ended() time.Time { return time.Unix(0, a.Ended) }

func (a answer) err() error {
	if a.Error == "" {
		return nil
	}
	return fmt.Errorf("%s: %s", a.Error, a.Message)
}

// startJVM starts a separate driver for a test that kills it.
func startJVM(t *testing.T, version string) *jvm {
	t.Helper()
	j := launch(t, version, t.TempDir())
	t.Cleanup(func() { j.kill(); j.checkLog(t) })
	return j
}

func launch(t *testing.T, version, dir string) *jvm {
	t.Helper()
	home := driverFor(t, version)
	j := &jvm{
		version: version, log: filepath.Join(dir, "java-"+version+".log"),
		exited: make(chan struct{}), waiting: map[int64]chan answer{},
	}
	// A small JVM that starts quickly: the test measures Redis, not Java.
	j.cmd = exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"-cp", filepath.Join(home, "classes")+":"+filepath.Join(home, "lib", "*"), "interop.Main")
	if err := j.run(); err != nil {
		t.Fatalf("java: %v", err)
	}
	return j
}

func (j *jvm) run() error {
	log, err := os.Create(j.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own
	j.cmd.Stderr = log
	output, err := j.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if j.input, err = j.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := j.cmd.Start(); err != nil {
		return err
	}
	go j.read(output)
	return nil
}

// read distributes answers until the JVM ends.
func (j *jvm) read(output io.Reader) {
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		a := answer{}
		if err := json.Unmarshal(line, &a); err != nil {
			a = answer{Error: "unreadable answer", Message: string(line)}
		}
		j.deliver(a)
	}
	_ = j.cmd.Wait()
	close(j.exited)
	j.deliverAll(answer{Error: died, Ended: time.Now().UnixNano()})
}

func (j *jvm) deliver(a answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c, ok := j.waiting[a.ID]; ok {
		c <- a
		delete(j.waiting, a.ID)
	}
}

func (j *jvm) deliverAll(a answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.waiting {
		c <- a
	}
	j.waiting = map[int64]chan answer{}
}

// send gives the driver a command for one of its threads.
func (j *jvm) send(thread, op string, f fields) <-chan answer {
	done := make(chan answer, 1)
	command := fields{"thread": thread, "op": op}
	for name, value := range f {
		command[name] = value
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	command["id"] = j.last
	line, err := json.Marshal(command)
	if err == nil {
		_, err = j.input.Write(append(line, '\n'))
	}
	if err != nil {
		done <- answer{Error: died, Message: err.Error()}
		return done
	}
	j.waiting[j.last] = done
	return done
}

// kill ends the JVM with SIGKILL and reaps it.
func (j *jvm) kill() {
	_ = j.cmd.Process.Kill() // an error only says that the process has ended
	<-j.exited
}
