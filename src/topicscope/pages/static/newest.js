// Work of which only the newest matters, one at a time: of what is asked for meanwhile, only the last comes next, and
// what takes longer than that can wait is ended. True: it was done; false: something newer took its place.
const PATIENCE = 400; // milliseconds
export const newest = (work) => {
  let running = null, next = null;
  const go = async () => {
    while (next) {
      const { what, done, fail } = next;
      [running, next] = [new AbortController(), null];
      try {
        await work(what, running.signal);
        done(true);
      } catch (error) {
        if (error.name === "AbortError") done(false);
        else fail(error);
      }
    }
    running = null;
  };
  return (what) => new Promise((done, fail) => {
    next?.done(false);
    next = { what, done, fail };
    const late = running;
    if (late) setTimeout(() => late.abort(), PATIENCE);
    else go();
  });
};
