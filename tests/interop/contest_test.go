package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/history"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// contest is the job of a process of this library; the driver gets the same.
type contest struct {
	URL     string `json:"url"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Threads int    `json:"threads"`
	Millis  int64  `json:"millis"`
	Hold    int64  `json:"hold"`    // ms for which each thread keeps a lock or permits
	From    int64  `json:"from"`    // when all begin, in ns of the clock; 0: at once
	Diary   string `json:"diary"`   // the file for the stays
	Parties int    `json:"parties"` // of a latch: all threads of all processes
	Until   int64  `json:"until"`   // of a latch: when rounds end, in ns of the clock
}

// outcome is what the threads of a process achieved.
type outcome struct {
	Passes int64   `json:"passes"`
	Shares []int64 `json:"shares"` // of each thread, without passes after the end
	Waits  []int64 `json:"waits"`  // ns, every wait of every thread
}

func (o *outcome) add(other outcome) {
	o.Passes += other.Passes
	o.Shares = append(o.Shares, other.Shares...)
	o.Waits = append(o.Waits, other.Waits...)
}

// wait returns the time within which that part of all waits ended, such as 0.99, or 1 for the
// longest.
func (o *outcome) wait(part float64) time.Duration {
	if len(o.Waits) == 0 {
		return 0
	}
	slices.Sort(o.Waits)
	return time.Duration(o.Waits[int(part*float64(len(o.Waits)-1))])
}

// contestant is a process of this library in a contest. Contest.java is its counterpart for
// Redisson.
var contestant = rig.Child("contestant", func(ctx context.Context, args []string) error {
	c := contest{}
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return err
	}
	raw, err := openRaw(c.URL)
	if err != nil {
		return err
	}
	defer raw.Close()
	client, err := latchkey.Connect(ctx, c.URL, latchkey.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	result, err := c.run(ctx, client, raw)
	if err == nil {
		text, _ := json.Marshal(result)
		fmt.Println("outcome", string(text))
	}
	return errors.Join(err, client.Close(ctx))
})

// run lets the threads contend until the time is over, and writes down their stays.
func (c contest) run(ctx context.Context, client *latchkey.Client, raw rueidis.Client) (outcome, error) {
	diaries, failures := make([]diary, c.Threads), make([]error, c.Threads)
	var all sync.WaitGroup
	for i := range c.Threads {
		all.Go(func() { failures[i] = c.contend(ctx, newContender(c, client, raw, &diaries[i]), &diaries[i]) })
	}
	all.Wait()
	result, text := outcome{}, []byte(nil)
	for _, d := range diaries {
		result.add(outcome{d.passes, []int64{d.inTime}, d.waits})
		text = append(text, d.stays...)
	}
	return result, errors.Join(errors.Join(failures...), os.WriteFile(c.Diary, text, 0o600))
}

func (c contest) contend(ctx context.Context, pass contender, d *diary) error {
	<-time.After(time.Until(time.Unix(0, c.From)))
	end := time.Now().Add(time.Duration(c.Millis) * time.Millisecond)
	for time.Now().Before(end) {
		again, err := pass(ctx)
		if err != nil || !again {
			return err
		}
		d.passes++
		if time.Now().Before(end) {
			d.inTime++
		}
	}
	return nil
}

// diary is what one thread records of its stays.
type diary struct {
	stays  []byte // as history.Read understands them
	passes int64
	inTime int64 // passes that ended before the others stopped
	waits  []int64
}

func (d *diary) stay(key string, from, to time.Time, permits int, token int64) {
	d.stays = history.Stay{Key: key, From: from.UnixNano(), To: to.UnixNano(), Permits: permits, Token: token}.Append(d.stays)
}

// waited records a wait that ends now, and returns the time.
func (d *diary) waited(since time.Time) time.Time {
	now := time.Now()
	d.waits = append(d.waits, int64(now.Sub(since)))
	return now
}
