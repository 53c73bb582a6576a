/** The script for tooltips. The page works without it. */
import { trusted } from '../html/index.js';

/**
 * `data-tip` is one text. `data-tips` has several texts, separated by `|` and spread evenly over the element's width; it moves the
 * cursor line before it.
 */
export const script = trusted(`(() => {
  const tip = document.getElementById('tip');
  let cursor = null;
  const hide = () => {
    tip.hidden = true;
    if (cursor) cursor.classList.remove('on');
    cursor = null;
  };
  const show = (event) => {
    const target = event.target.closest ? event.target.closest('[data-tip],[data-tips]') : null;
    if (cursor && (!target || target.previousElementSibling !== cursor)) hide();
    if (!target) return hide();
    let text = target.dataset.tip;
    if (target.dataset.tips) {
      const texts = target.dataset.tips.split('|');
      const box = target.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      const index = Math.round(share * (texts.length - 1));
      const x = target.x.baseVal.value + (index / (texts.length - 1)) * target.width.baseVal.value;
      cursor = target.previousElementSibling;
      cursor.setAttribute('x1', x);
      cursor.setAttribute('x2', x);
      cursor.classList.add('on');
      text = texts[index];
    }
    tip.textContent = text;
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(8, Math.min(room, event.clientX + 14)) + 'px';
    const above = event.clientY - tip.offsetHeight - 12;
    tip.style.top = (above > 8 ? above : event.clientY + 20) + 'px';
  };
  document.addEventListener('pointermove', show);
  document.addEventListener('pointerdown', show);
  document.addEventListener('scroll', hide, { passive: true, capture: true });
  document.documentElement.addEventListener('pointerleave', hide);
})();`);
