package interop;

import java.time.Instant;
import java.util.concurrent.TimeUnit;

/** The clock of the machine, which the Go side reads as well. */
final class Clock {
    static long nanos() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    /** Rests until a time, which may be over. */
    static void restUntil(long nanos) throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(nanos - nanos());
    }

    private Clock() {
    }
}
