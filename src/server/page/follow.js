// Keeps the end of growing text in sight, unless the visitor has scrolled away from it.
import { oncePerFrame } from "./dom.js";

const NEAR_PX = 60;

/** Returns { follow, restart }: `follow` is called after growth, `restart` to go to the end from wherever. */
export function followEnd(area) {
  let isFollowing = true;
  const scroller = () => (getComputedStyle(area).overflowY === "visible" ? document.scrollingElement : area);
  const look = () => {
    if (area.clientHeight === 0) return;
    const { scrollHeight, scrollTop, clientHeight } = scroller();
    isFollowing = scrollHeight - scrollTop - clientHeight < NEAR_PX;
  };
  area.addEventListener("scroll", look, { passive: true });
  document.addEventListener("scroll", look, { passive: true });
  const follow = oncePerFrame(() => {
    if (isFollowing && area.clientHeight > 0) scroller().scrollTop = scroller().scrollHeight;
  });
  const restart = () => {
    isFollowing = true;
    follow();
  };
  return { follow, restart };
}
