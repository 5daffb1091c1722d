package interop;

import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;

/** One or two permits that have leases. */
final class Lending implements Contender {
    private final RPermitExpirableSemaphore semaphore;
    private final Counter counter;
    private final String name;
    private final long hold; // milliseconds more than looking takes
    private final Diary diary;

    Lending(RedissonClient client, String name, long hold, Diary diary) {
        semaphore = client.getPermitExpirableSemaphore(name);
        counter = new Counter(client, name);
        this.name = name;
        this.hold = hold;
        this.diary = diary;
    }

    @Override
    public boolean pass() throws InterruptedException {
        int permits = 1 + ThreadLocalRandom.current().nextInt(2);
        long start = Clock.nanos();
        List<String> ids = semaphore.acquire(permits, 30, TimeUnit.SECONDS);
        long from = Clock.nanos();
        diary.waited(from - start);
        counter.watch(); // which only takes time
        Thread.sleep(hold);
        diary.stay(name, from, Clock.nanos(), permits, 0);
        if (permits == 1) {
            semaphore.release(ids.get(0));
        } else {
            semaphore.release(ids);
        }
        return true;
    }
}
