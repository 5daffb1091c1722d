package interop;

import java.time.Instant;

/** The clock of the machine, which the Go side reads as well. */
final class Clock {
    static long nanos() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    private Clock() {
    }
}
