package report

import (
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Notice is a kind of log line.
type Notice struct {
	level slog.Level
	Text  string
	about string        // the name of the subject
	every time.Duration // at most once in this time about one subject
}

const (
	// noticePeriod is for events that may happen again.
	noticePeriod = 10 * time.Second
	// rarePeriod is for conditions that last until somebody changes a setting.
	rarePeriod = time.Hour
)

// The notices that are always the same.
var (
	NoticePublish = Notice{slog.LevelWarn,
		"latchkey: the server refuses to publish releases, waiters of other processes poll", "channel", rarePeriod}
	NoticeSubscribe = Notice{slog.LevelWarn,
		"latchkey: the server refuses a subscription, waiters poll", "channel", rarePeriod}
	NoticeBeat = Notice{slog.LevelWarn,
		"latchkey: the server refuses the heartbeat channel, so a silent subscription goes unnoticed",
		"channel", rarePeriod}
	NoticeNoExpiry = Notice{slog.LevelWarn,
		"latchkey: the key has no expiry: the lock is damaged, or another program wrote the key; still waiting",
		"key", rarePeriod}
	NoticeOwnWait = Notice{slog.LevelWarn,
		"latchkey: a call waits without a limit for a lock that a call of this client holds; " +
			"if it runs under that hold, pass it the context of the hold", "lock", rarePeriod}
	NoticeOwnReader = Notice{slog.LevelWarn,
		"latchkey: a call waits to read behind a writer, which waits for a call of this client to stop reading; " +
			"if it runs under that hold, pass it the context of the hold", "lock", rarePeriod}
	NoticeTrouble = Notice{slog.LevelWarn,
		"latchkey: the server does not answer; still waiting", "lock", noticePeriod}
	NoticeBusyServer = Notice{slog.LevelWarn,
		"latchkey: the server answers, but cannot serve the request now; still waiting", "lock", noticePeriod}
	NoticeSubscription = Notice{slog.LevelWarn,
		"latchkey: subscription lost, waiters poll until it is back", "node", noticePeriod}
	NoticeRenewal = Notice{slog.LevelWarn,
		"latchkey: renewal failed, repeating it", "lock", noticePeriod}
	NoticeRefresh = Notice{slog.LevelWarn,
		"latchkey: fair waiters could not be refreshed, repeating it", "node", noticePeriod}
	NoticeLabel = Notice{slog.LevelWarn,
		"latchkey: the server refuses the label of this client, others see its owners by their ids",
		"label", rarePeriod}
	NoticeGivenUp = Notice{slog.LevelError,
		"latchkey: an operation whose outcome is unknown was given up", "note", noticePeriod}
	NoticeUnreleased = Notice{slog.LevelError,
		"latchkey: a hold was dropped without Unlock and is renewed until its MaxHold or until the client is closed",
		"lock", noticePeriod}
	noticePanic = Notice{slog.LevelError,
		"latchkey: the observer panicked", "event", noticePeriod}
	noticeDropped = Notice{slog.LevelWarn,
		"latchkey: an event was dropped because the observer is too slow", "event", noticePeriod}
)

// NoticeLost is for a hold that ended without a release.
func NoticeLost(why string) Notice {
	return Notice{slog.LevelWarn, "latchkey: hold lost: " + why, "lock", noticePeriod}
}

// line returns the notice about a subject as a log record. Errors have one line in it.
func (n Notice) line(subject string, attrs []slog.Attr) *slog.Record {
	line := slog.NewRecord(time.Now(), n.level, n.Text, 0)
	if subject != "" {
		line.AddAttrs(slog.String(n.about, subject))
	}
	for _, a := range attrs {
		if err, is := a.Value.Any().(error); is {
			a.Value = slog.AnyValue(fault.OneLine(err))
		}
		line.AddAttrs(a)
	}
	return &line
}
