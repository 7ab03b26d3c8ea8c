// Keeps the end of growing text in sight, unless the visitor has scrolled away from it.
const NEAR_PX = 60;

/** Follows the growth of what `area` holds; the function returned goes to the end from wherever it is. */
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
  const follow = () => {
    if (isFollowing && area.clientHeight > 0) scroller().scrollTop = scroller().scrollHeight;
  };
  const growth = new ResizeObserver(follow);
  for (const child of area.children) growth.observe(child);
  return () => {
    isFollowing = true;
    follow();
  };
}
